package main

import "trunkline/handlers/toolhost/workerexec"

// becomes makes the process of a worker its program before the runtime begins, which costs more
// than all else of its start. entry calls it; where the program is not linked with that, the same
// happens when the packages are initialised.
var becomes = workerexec.Replace
