// Package manifest reads toolpack manifests: which tools there are, what they may do, and what runs
// them (toolhost §4.10).
//
//	{"toolpack_id":"toolpack.text","toolpack_version":"1.0.0","trust_tier":"tier2_untrusted",
//	 "tools":[{"aid":"AID.TEXT.COUNT.v1","name":"count","deterministic":true,"tags":["tag.text"],
//	   "side_effects":["none"],"estimate_model":{"mode":"ConservativeBound"},"inputs_schema":{},
//	   "outputs_schema":{},"exec":{"kind":"process","command":["./count"],"mode":"serve"}}]}
//
//	LoadAll   plugin arguments ("builtin", manifests, directories), no two with the same tool
//	Entry     one tool: its descriptor, and how it is run
//
// The JSON is held to the rules of request lines (toolhost §2.4). Unknown members are passed over,
// but not within exec.
//
// Where toolhost §4.10 is silent: mode is "oneshot" if not given; exec.limits {"as_mb","cpu_s",
// "fsize_mb","nofile"} can only lower limits; env has at most 256 variables of 64 KiB together; a
// manifest is a regular file; null is a value, not absence.
//
// Not implemented, on purpose: signatures of toolpacks, and judging inputs by their schema.
package manifest
