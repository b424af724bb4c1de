package exacta

import core "trunkline/engine/exacta"

type (
	exactaArgs = core.Args
	exactaSum  = core.Sum
)
