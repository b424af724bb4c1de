package mcp

import (
	"net/http"
	"strings"

	"trunkline/codec/jsonx"
)

// metadataPath is where clients find which issuers the server trusts (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource/mcp"

// Metadata answers with the description of the protected resource (threads §4.10). It is nil
// without issuers: then there is nothing to describe. Without a URL it is 404 with the reason.
func Metadata(publicURL string, authServers []string) http.Handler {
	if len(authServers) == 0 {
		return nil
	}
	body := jsonx.Build(nil).Text("resource", resource(publicURL)).Texts("authorization_servers", authServers).
		Texts("bearer_methods_supported", []string{"header"}).Text("resource_name", serverName).End()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions { // clients in a browser send headers of MCP
			h["Access-Control-Allow-Headers"], h["Access-Control-Max-Age"] = corsHeaders, corsMaxAge
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Allow", "GET, HEAD, OPTIONS")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		if publicURL == "" {
			http.Error(w, "there is no description of the protected resource: threads.public_url is not set", http.StatusNotFound)
			return
		}
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
}

// resource returns the address of MCP below a public URL.
func resource(publicURL string) string { return strings.TrimRight(publicURL, "/") + "/mcp" }

// MetadataURL returns the address of the description of the resource, which a 401 names; empty
// where Metadata is nil.
func MetadataURL(publicURL string, authServers []string) string {
	if publicURL == "" || len(authServers) == 0 {
		return ""
	}
	return strings.TrimRight(publicURL, "/") + metadataPath
}
