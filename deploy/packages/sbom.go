package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// The part of CycloneDX 1.6 that a Go program needs.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// componentsOf returns the list of components of a binary: the modules that the linker has recorded in
// it, and the standard library.
func componentsOf(binary, version string, date time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	top := component{
		Type: "application", Ref: "trunkline@" + version, Name: "trunkline", Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" || s.Key == "-trimpath" {
			top.Properties = append(top.Properties, property{"go:" + strings.TrimPrefix(s.Key, "-"), s.Value})
		}
	}
	b := bom{
		Format: "CycloneDX", SpecVersion: "1.6", SerialNumber: serial(sum), Version: 1,
		Metadata: metadata{Timestamp: date.Format(time.RFC3339), Component: top},
		Components: []component{{
			Type: "library", Ref: "std", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
			PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
		}},
	}
	for _, m := range info.Deps {
		b.Components = append(b.Components, moduleOf(m))
	}
	all := dependency{Ref: top.Ref, DependsOn: []string{}}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// moduleOf describes a module as it is linked: a replaced one by what replaces it.
func moduleOf(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{
		Type: "library", Ref: m.Path + "@" + m.Version, Name: m.Path, Version: m.Version,
		PURL: "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B"),
	}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

// serial returns a UUID that depends on the binary alone.
func serial(sum [sha256.Size]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // version 8 of RFC 9562: of the program's own making
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
