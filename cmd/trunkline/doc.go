// Command trunkline serves the trunkline wire engine and speaks to it: verbs first, one binary,
// behaviour by arguments.
//
// The way of the settings is flags > environment > file > defaults (internal/config); what the
// verbs share in output and errors is internal/cli; the wiring of listeners, protocols and the
// admin endpoint is internal/app.
package main
