package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"trunkline/handlers/threads/token"
)

// devIssuer is the issuer of the tokens that --dev makes, devTokenFor how long they are valid.
const (
	devIssuer   = "trunkline-dev"
	devTokenFor = 24 * time.Hour
)

// devToken is a token that --dev makes.
type devToken struct{ agent, text string }

// devAgents are who the tokens of --dev are for.
var devAgents = []struct {
	agent string
	role  token.Role
}{{"dev_coordinator", token.Coordinator}, {"dev_writer", token.Participant}, {"dev_reviewer", token.Participant}}

// newDevTokens makes a key pair and tokens by it. The private half is forgotten.
func newDevTokens(tc *token.Config) (list []devToken, err error) {
	private, public, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "trunkline-dev-*.pem")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(public)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	tc.PublicKeyFile = f.Name()
	tc.Issuer = cmp.Or(tc.Issuer, devIssuer)
	tc.Audience = cmp.Or(tc.Audience, token.DefaultAudience)
	now := time.Now().Truncate(time.Second)
	for _, a := range devAgents {
		claims := token.Claims{Agent: a.agent, Workspace: cmp.Or(tc.WorkspaceID, "dev"), Session: a.agent + "_session",
			ID: fmt.Sprintf("%s-%d", a.agent, now.UnixNano()), Role: a.role,
			Issued: float64(now.Unix()), Expires: float64(now.Add(devTokenFor).Unix())}
		text, err := token.Sign(private, &claims, tc.Issuer, tc.Audience)
		if err != nil {
			return nil, err
		}
		list = append(list, devToken{a.agent, text})
	}
	return list, nil
}

// mcpServer is how MCP clients write down a server.
type mcpServer struct {
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// writeDevFile writes the tokens for a server at an address to a file that its owner alone can
// read.
func writeDevFile(name, addr string, list []devToken) error {
	servers := map[string]mcpServer{}
	for _, t := range list {
		servers[t.agent] = mcpServer{"http", "http://" + addr + "/mcp", map[string]string{"Authorization": "Bearer " + t.text}}
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) { // one of before may be readable by others
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o600)
}

// showDev shows the tokens of --dev, if there are any, and writes them to a file.
func (t *threadServer) showDev(o Options, web *listener) {
	for i, token := range t.dev {
		if i == 0 {
			fmt.Fprintf(o.Banner, "threads token for a day: %s\n", token.text) // of the coordinator
			continue
		}
		fmt.Fprintf(o.Banner, "threads token of %s: %s\n", token.agent, token.text)
	}
	all := web.bounds()
	if len(t.dev) == 0 || o.DevFile == "" || len(all) == 0 {
		return
	}
	if err := writeDevFile(o.DevFile, all[0].addr, t.dev); err != nil {
		o.Logger.Warn("cannot write the tokens of --dev", "error", err)
		return
	}
	fmt.Fprintf(o.Banner, "threads tokens, as MCP clients read them: %s\n", o.DevFile)
}
