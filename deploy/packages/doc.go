// Command packages makes what a release consists of, out of binaries that make release has built:
// an archive for each platform, packages for Debian and for RPM with man pages, completions and
// units, a list of components for each binary (SBOM, CycloneDX 1.6), and checksums.
//
// Nothing depends on the machine or the time: dates are -date, owners are root, names are sorted.
// Two runs write the same bytes. It is a module of its own, so that what it needs never enters the
// program.
package main
