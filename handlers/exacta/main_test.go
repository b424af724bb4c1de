package exacta

import (
	core "trunkline/engine/exacta"
	"trunkline/engine/exacta/wire"
)

type (
	exactaArgs    = core.Args
	exactaRequest = core.Request
)

// parsed returns an id.
func parsed(text string) wire.ID {
	id, _ := wire.ParseID([]byte(text))
	return id
}
