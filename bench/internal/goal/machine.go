package goal

// Machine is where, when and on which revision a run took place, for its report. What cannot be
// read is "unknown".
type Machine struct {
	Date     string `json:"date"`     // of the run, in UTC
	Revision string `json:"revision"` // of the sources in the working directory, with "-dirty" if they were changed since; what is made of figures is none
	CPUs     int    `json:"cpus"`
	Model    string `json:"cpu_model,omitempty"` // as the system names it; empty where it does not
	Arch     string `json:"arch"`
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Load     string `json:"load_average"`         // of the last minute
	Disk     string `json:"filesystem,omitempty"` // under the stores, where there are any
}
