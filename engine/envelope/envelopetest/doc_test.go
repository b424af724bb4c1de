// Package envelopetest holds the black-box tests of the envelope engine of boundary A.
//
// They know the engine only by its texts: JSON in, JSON out. Three kinds of tests share the helpers
// of json_test.go: tables, one row per sentence of envelope §3-§5 and §9; a plain second model of
// the step (model_*_test.go, maps instead of bytes) that random envelopes and a worker simulation
// are compared with; and a fuzz target. The model favours reading over speed and shares no code
// with the engine, so that a misread rule has to be misread twice to go unnoticed.
package envelopetest
