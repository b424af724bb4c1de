// Package config turns flags, environment, a YAML file and defaults into one struct, and remembers
// where every value came from.
//
// One setting has one name everywhere. kernel.max_frame_bytes is
//
//	--set kernel.max_frame_bytes=N            a flag, strongest
//	TRUNKLINE_KERNEL_MAX_FRAME_BYTES=N        the environment
//	kernel: {max_frame_bytes: N}              the file: --config PATH, else ./trunkline.yaml when it is there
//	5242880                                   the default
//
// The table in settings.go is the single list: parsing, ranges, the reference shown by "config
// show" and the struct fields all come from its rows. A key that is not in it is an error that
// names the nearest key that is. An environment variable whose first word is no section, nor within
// two edits of one, belongs to another program (TRUNKLINE_BIN): it is a warning.
package config
