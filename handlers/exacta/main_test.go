package exacta

import (
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
)

type (
	exactaArgs    = projects.Args
	exactaRequest = projects.Request
)

// parsed returns an id.
func parsed(text string) codec.ID {
	id, _ := codec.ParseID([]byte(text))
	return id
}
