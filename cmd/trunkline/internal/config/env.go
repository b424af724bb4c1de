package config

import (
	"regexp"
	"strings"
	"sync"
)

// envPrefix starts the name of every environment variable read as a setting.
const envPrefix = "TRUNKLINE_"

// orchestrated matches what a container orchestrator injects for a service that happens to be
// called trunkline or trunkline-kernel (TRUNKLINE_SERVICE_HOST, TRUNKLINE_PORT_50051_TCP_ADDR,
// TRUNKLINE_KERNEL_PORT, …). No setting of ours has such a name, and refusing to start over it
// would not help. Compiled when first asked for, so that commands without settings do not pay for
// it at start.
var orchestrated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
})

// envName returns the environment variable of a setting.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, delim, "_"))
}

// clientEnv is the variable that names the server for the client verbs; it is no setting of a
// server.
const clientEnv = envPrefix + "ADDR"

// keyOfEnv returns the setting an environment variable names, known or not; "" for variables that
// are none of ours.
func keyOfEnv(name string) string {
	if name == clientEnv || orchestrated().MatchString(name) {
		return ""
	}
	rest := strings.ToLower(strings.TrimPrefix(name, envPrefix))
	return strings.Replace(rest, "_", delim, 1)
}

func isSection(key string) bool {
	for _, s := range table {
		if strings.HasPrefix(s.key, key+delim) {
			return true
		}
	}
	return false
}
