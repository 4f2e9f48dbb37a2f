/** What dpkg reads about our package: its control file, and the scripts that it runs around it. */

interface ControlPlan {
  readonly version: string
  /** Debian's name: `amd64`. */
  readonly arch: string
  /** The size of all files, in KiB. */
  readonly kib: number
}

const UNITS = 'flasher-web.service flasher-cache.service'

export const CONFIGURATION_FILES = ['/etc/flasher/flasher.env'] as const

/** Renders the control file (deb-control(5)). */
export const renderControl = ({ version, arch, kib }: ControlPlan): string =>
  [
    'Package: flasher-lab',
    `Version: ${version}`,
    `Architecture: ${arch}`,
    'Maintainer: The flasher authors <flasher@localhost>',
    `Installed-Size: ${kib}`,
    'Depends: libatomic1, libc6, libstdc++6, passwd',
    'Recommends: ca-certificates, libpam-modules-bin, qemu-utils, xz-utils, zstd',
    'Suggests: dnsmasq, ipxe, sudo',
    'Section: admin',
    'Priority: optional',
    'Description: writes disk images, boots machines over the network and flashes them',
    ' flasher writes operating-system images onto disks and proves that it worked.',
    ' flasher-web boots machines over the network and has them flashed; flasher-cache',
    ' keeps the images. Node and all libraries are included.',
    '',
  ].join('\n')

/** The scripts by name. `$1` is what dpkg is doing. */
export const PACKAGE_SCRIPTS: Readonly<Record<string, string>> = {
  postinst: `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
getent passwd flasher >/dev/null ||
  useradd --system --user-group --home-dir /var/lib/flasher --shell /usr/sbin/nologin \\
    --comment 'flasher machine server' flasher
# It may hold passwords.
chown root:flasher /etc/flasher/flasher.env
chmod 0640 /etc/flasher/flasher.env
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # An upgrade keeps what the administrator has disabled.
  if [ -z "$2" ]; then systemctl enable ${UNITS}; fi
  for unit in ${UNITS}; do
    if systemctl --quiet is-enabled "$unit"; then systemctl restart "$unit" || :; fi
  done
elif [ -z "$2" ] && command -v systemctl >/dev/null; then
  systemctl enable ${UNITS}
fi
`,
  prerm: `#!/bin/sh
set -e
if [ "$1" = remove ] && command -v systemctl >/dev/null; then
  if [ -d /run/systemd/system ]; then systemctl stop ${UNITS}; fi
  systemctl disable ${UNITS}
fi
`,
  postrm: `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
# State is the administrator's: it goes only with purge.
if [ "$1" = purge ]; then
  rm -rf /var/lib/flasher
  if getent passwd flasher >/dev/null; then userdel flasher || :; fi
fi
`,
}
