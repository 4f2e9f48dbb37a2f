/** What dpkg reads about our packages: their control files, and the scripts that it runs around them. */

/** The packages by what they are for; the last one is what all of it was called before. */
export const DEBIAN_PACKAGES = ['flasher', 'flasher-server', 'flasher-lab'] as const
export type DebianName = (typeof DEBIAN_PACKAGES)[number]

interface ControlPlan {
  readonly name: DebianName
  readonly version: string
  /** Debian's name of the processor that the programs are for: `amd64`. */
  readonly arch: string
  /** The size of all files, in KiB. */
  readonly kib: number
}

/** flasher-web.service wants flasher-proxy.path, also after an upgrade. */
const UNITS = 'flasher-web.service flasher-cache.service'

export const CONFIGURATION_FILES: readonly string[] = ['/etc/flasher/flasher.env']

/** What of the programs' tree is the server's alone; folders end in a slash. */
const SERVER_PATHS = [
  'etc/flasher/',
  'usr/bin/flasher-cache',
  'usr/bin/flasher-web',
  'usr/lib/flasher/service/earlier-cache.conf',
  'usr/lib/flasher/service/earlier-web.conf',
  'usr/lib/systemd/',
  'usr/lib/sysusers.d/',
  'usr/sbin/flasher-web-activate-pxe',
  'usr/sbin/flasher-web-proxy',
]

/** Returns the package that a file of the tree belongs to; `path` is relative to `/`. */
export const packageOf = (path: string): DebianName =>
  SERVER_PATHS.some((one) => (one.endsWith('/') ? path.startsWith(one) : path === one))
    ? 'flasher-server'
    : 'flasher'

/** Whether its files are the same for every processor. */
const isForAll = (name: DebianName): boolean => name !== 'flasher'

/** An older package of the former name has these files, and makes room. */
const replaces = (version: string) => [
  `Breaks: flasher-lab (<< ${version})`,
  `Replaces: flasher-lab (<< ${version})`,
]

const FIELDS: Readonly<Record<DebianName, (version: string) => readonly string[]>> = {
  flasher: (version) => [
    'Depends: libatomic1, libc6, libstdc++6',
    'Recommends: ca-certificates, qemu-utils, xz-utils, zstd',
    'Suggests: flasher-server',
    ...replaces(version),
    'Section: admin',
    'Description: writes disk images to disks and proves that it worked',
    ' flasher writes operating-system images onto disks, captures and compares them, in',
    ' a wizard, with two panes and as commands. Node and all libraries are included.',
  ],
  'flasher-server': (version) => [
    `Depends: flasher (= ${version}), passwd`,
    'Recommends: libpam-modules-bin',
    'Suggests: dnsmasq-base, ipmitool, iproute2, ipxe, openssh-client, sudo',
    ...replaces(version),
    'Section: admin',
    'Description: boots machines over the network and flashes them',
    ' flasher-web manages machines, boots them over the network and flashes them;',
    ' flasher-cache keeps the images.',
  ],
  'flasher-lab': (version) => [
    `Depends: flasher (= ${version}), flasher-server (= ${version})`,
    'Section: oldlibs',
    'Description: transitional package for flasher and flasher-server',
    ' It can be removed.',
  ],
}

/** Renders the control file (deb-control(5)). */
export const renderControl = ({ name, version, arch, kib }: ControlPlan): string =>
  [
    `Package: ${name}`,
    'Source: flasher',
    `Version: ${version}`,
    `Architecture: ${isForAll(name) ? 'all' : arch}`,
    'Maintainer: The flasher authors <flasher@localhost>',
    `Installed-Size: ${kib}`,
    'Priority: optional',
    ...FIELDS[name](version),
    '',
  ].join('\n')

/** The scripts of the server's package by name. `$1` is what dpkg is doing. */
export const SERVER_SCRIPTS: Readonly<Record<string, string>> = {
  postinst: `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
# An upgrade keeps what the administrator has disabled, also one from the package of the former name.
is_new=
if [ -z "$2" ] && ! getent passwd flasher >/dev/null; then is_new=1; fi
getent passwd flasher >/dev/null ||
  useradd --system --user-group --home-dir /var/lib/flasher --shell /usr/sbin/nologin \\
    --comment 'flasher machine server' flasher
# What is left of the package of the former name would take state and user along when it is purged.
former=$(dpkg-query --control-path flasher-lab postrm 2>/dev/null) || former=
if [ -n "$former" ]; then rm -f "$former"; fi
# It may hold passwords.
chown root:flasher /etc/flasher/flasher.env
chmod 0640 /etc/flasher/flasher.env
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ -n "$is_new" ]; then systemctl enable ${UNITS}; fi
  for unit in ${UNITS}; do
    if systemctl --quiet is-enabled "$unit"; then systemctl restart "$unit" || :; fi
  done
elif [ -n "$is_new" ] && command -v systemctl >/dev/null; then
  systemctl enable ${UNITS}
fi
`,
  prerm: `#!/bin/sh
set -e
if [ "$1" = remove ] && command -v systemctl >/dev/null; then
  if [ -d /run/systemd/system ]; then systemctl stop ${UNITS} flasher-proxy.path flasher-proxy.service; fi
  systemctl disable ${UNITS}
fi
`,
  postrm: `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
# State is the administrator's: it goes only with purge, and not while another package serves it.
if [ "$1" = purge ] && [ ! -e /usr/bin/flasher-web ]; then
  rm -rf /var/lib/flasher
  if getent passwd flasher >/dev/null; then userdel flasher || :; fi
fi
`,
}
