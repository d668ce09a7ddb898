#!/usr/bin/env bash
# Prints the access mode and the volume mode of a volume of $STORAGE_CLASS, as JSON: those that CDI would give it, or
# else ReadWriteOnce, which every class has. Usage: storage.sh
set -euo pipefail
if "${KUBECTL:-kubectl}" get storageprofiles.cdi.kubevirt.io "$STORAGE_CLASS" -o jsonpath='{.status.claimPropertySets[0]}' |
  grep .; then
  exit
fi
echo "CDI says nothing of StorageClass $STORAGE_CLASS, so the volume is ReadWriteOnce" >&2
echo '{"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}'
