package config

// Bounds of the HTTP section.
const (
	maxHeader = 1 << 24
	minHeader = 4096 // net/http reads this much ahead before it counts
)

var httpSettings = []setting{
	{key: keyMaxBody, def: 5242880, min: 1, max: maxFrame,
		help: "largest body of a request, and largest input of the commands process, create, can-continue, result, validate",
		at:   func(c *Config) any { return &c.HTTP.MaxBodyBytes }},
	{key: "http.max_in_flight", def: 256, min: 1, max: maxCount,
		help: "requests answered at a time; one more gets 503",
		at:   func(c *Config) any { return &c.HTTP.MaxInFlight }},
	{key: "http.max_connections", def: 1024, min: 1, max: maxCount,
		help: "open connections of one address; further ones wait until one closes",
		at:   func(c *Config) any { return &c.HTTP.MaxConnections }},
	{key: "http.read_header_timeout_secs", def: 10, min: 1, max: maxSecs,
		help: "time for a request's headers to arrive",
		at:   func(c *Config) any { return &c.HTTP.ReadHeaderTimeoutSecs }},
	{key: "http.read_body_timeout_secs", def: 30, min: 1, max: maxSecs,
		help: "time for a request's body to arrive; then 408",
		at:   func(c *Config) any { return &c.HTTP.ReadBodyTimeoutSecs }},
	{key: "http.idle_timeout_secs", def: 120, min: 1, max: maxSecs,
		help: "silence between two requests before a connection is closed",
		at:   func(c *Config) any { return &c.HTTP.IdleTimeoutSecs }},
	{key: "http.write_timeout_secs", def: 30, min: 1, max: maxSecs,
		help: "time for a reply to leave before a connection is closed",
		at:   func(c *Config) any { return &c.HTTP.WriteTimeoutSecs }},
	{key: "http.max_header_bytes", def: 65536, min: minHeader, max: maxHeader,
		help: "size of a request's headers; more gets 431",
		at:   func(c *Config) any { return &c.HTTP.MaxHeaderBytes }},
	{key: keyStageOrder, def: "perception,intent,plan,execution,critic,integration",
		help: "stages of an envelope that lists none, comma separated; the commands too",
		at:   func(c *Config) any { return &c.HTTP.DefaultStageOrder }},
}
