package main

import "regexp"

var (
	tagged   = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)
	released = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$`)
	plain    = regexp.MustCompile(`[^0-9A-Za-z]+`)
)

// packageVersion returns a version that both kinds of packages sort as it is meant. version is that of
// git describe: a tag, commits behind a tag, or the name of a commit where there is no tag. The last
// one precedes the newest version of the changelog.
func packageVersion(version, changes string) (string, error) {
	if m := tagged.FindStringSubmatch(version); m != nil {
		number := m[1]
		if m[2] != "" {
			number += "+" + m[2] + ".g" + m[3]
		}
		if m[4] != "" {
			number += "+dirty"
		}
		return number, nil
	}
	m := released.FindStringSubmatch(changes)
	if m == nil {
		return "", errNoVersion
	}
	if version == "" {
		return m[1], nil
	}
	return m[1] + "~" + plain.ReplaceAllString(version, "."), nil
}
