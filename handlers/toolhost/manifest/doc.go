// Package manifest reads toolpack manifests: which tools there are, what they may do, and what runs them (toolhost §4.10).
//
//	{"toolpack_id":"toolpack.text","toolpack_version":"1.0.0","trust_tier":"tier2_untrusted","tools":[
//	  {"aid":"AID.TEXT.COUNT.v1","name":"count","deterministic":true,"tags":["tag.text"],"side_effects":["none"],
//	   "estimate_model":{"mode":"ConservativeBound"},"inputs_schema":{},"outputs_schema":{},
//	   "exec":{"kind":"process","command":["./count"],"mode":"serve","pool":{"max":8}}}]}
//
//	LoadAll   plugin arguments ("builtin", a manifest, a directory of manifests), of which no two may
//	          declare the same tool
//	Entry     one tool: its descriptor, and how it is run
//
// The JSON is held to the rules of request lines (toolhost §2.4): strict grammar, UTF-8, 32 levels, no known member twice. Members
// are passed over if unknown, except within exec, where a word misspelled could loosen a limit.
//
// Where toolhost §4.10 is silent: mode is "oneshot" if not given, which every program that can serve can do as well; limits of a
// process are lowered by exec.limits {"as_mb","cpu_s","fsize_mb","nofile"}, and a manifest that would raise one is invalid; env has
// at most 256 variables of 64 KiB together; a manifest is a regular file; null is a value like another, not absence.
//
// Not implemented, on purpose: signatures of toolpacks (sha256 of what is run is all there is), and judging inputs by their schema.
package manifest
