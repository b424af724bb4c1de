#!/bin/sh
# $1 is "remove" for Debian and 0 for RPM when the package goes for good, else it is an upgrade.
set -e
if [ -d /run/systemd/system ]; then
	case "$1" in
	remove | 0)
		# Patterns are for units that are loaded, and disable takes none. Sockets come first: one
		# that listens would start the service again.
		systemctl disable --now trunkline.socket trunkline-http.socket trunkline-threads.socket \
			trunkline-threads-lines.socket trunkline.service || true
		;;
	esac
fi
