#!/bin/sh
# The service is not started, and a running one not restarted: when that is done is the operator's
# decision.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
