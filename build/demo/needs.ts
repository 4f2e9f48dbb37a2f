/** What the demo requires of a host, and the command that gets what is missing. */

type Family = 'debian' | 'fedora' | 'arch' | 'suse' | 'macos'

export interface DemoHost {
  /** Null: its package manager is unknown. */
  readonly family: Family | null
  readonly isRoot: boolean
  /** `7.2.22`; null: there is no `qemu-system-x86_64`. */
  readonly qemu: string | null
  /** Whether QEMU finds a network boot ROM for the machine's network card. */
  readonly hasRom: boolean
  /** Whether QEMU can open a window. */
  readonly hasWindow: boolean
  readonly freeBytes: number
}

/** One thing that was checked. */
export interface Need {
  readonly isMet: boolean
  readonly text: string
  /** How to get it, where it is missing. */
  readonly advice: string | null
}

/** The machine's own memory is half of it. */
const NEEDED_BYTES = 2 * 2 ** 30

/** By family: the command, and the package of each thing. */
const PACKAGES: Readonly<
  Record<
    Family,
    {
      readonly install: string
      readonly qemu: string
      readonly rom: string
      readonly window: string
    }
  >
> = {
  debian: {
    install: 'apt-get install --no-install-recommends',
    qemu: 'qemu-system-x86',
    rom: 'ipxe-qemu',
    window: 'qemu-system-gui',
  },
  fedora: {
    install: 'dnf install',
    qemu: 'qemu-system-x86-core',
    rom: 'ipxe-roms-qemu',
    window: 'qemu-ui-gtk',
  },
  arch: {
    install: 'pacman -S',
    qemu: 'qemu-system-x86',
    rom: 'qemu-common',
    window: 'qemu-ui-gtk',
  },
  suse: { install: 'zypper install', qemu: 'qemu-x86', rom: 'qemu-ipxe', window: 'qemu-ui-gtk' },
  macos: { install: 'brew install', qemu: 'qemu', rom: 'qemu', window: 'qemu' },
}

/**
 * Lists what is needed, in the order in which it is shown; `window` says that the machine's screen
 * is wanted.
 */
export function listNeeds(host: DemoHost, window: boolean): readonly Need[] {
  const { qemu, hasRom, hasWindow, freeBytes } = host
  const packages: readonly Thing[] = qemu === null ? ['qemu', 'rom'] : ['rom']
  const install = renderInstall(host, window && qemu === null ? [...packages, 'window'] : packages)
  const tool: Need =
    qemu === null
      ? { isMet: false, text: 'qemu-system-x86_64 is not installed', advice: install }
      : hasRom
        ? { isMet: true, text: `QEMU ${qemu} with a network boot ROM`, advice: null }
        : { isMet: false, text: `QEMU ${qemu} has no network boot ROM`, advice: install }
  const screen: Need = {
    isMet: false,
    text: 'QEMU cannot open a window',
    advice: `${renderInstall(host, ['window'])}, or leave out --window`,
  }
  const free = `${gib(freeBytes)} GiB of memory free`
  const memory: Need =
    freeBytes >= NEEDED_BYTES
      ? { isMet: true, text: free, advice: null }
      : {
          isMet: false,
          text: `${free}, ${gib(NEEDED_BYTES)} GiB required`,
          advice: 'close other programs',
        }
  return [tool, ...(window && qemu !== null && !hasWindow ? [screen] : []), memory]
}

type Thing = 'qemu' | 'rom' | 'window'

function renderInstall({ family, isRoot }: DemoHost, things: readonly Thing[]): string {
  if (family === null) {
    return 'install QEMU for x86-64 with its iPXE ROMs (qemu-system-x86_64, efi-virtio.rom)'
  }
  const { install, ...packages } = PACKAGES[family]
  const names = [...new Set(things.map((thing) => packages[thing]))]
  return `${isRoot || family === 'macos' ? '' : 'sudo '}${install} ${names.join(' ')}`
}

/**
 * Decides by `ID` and `ID_LIKE` of /etc/os-release, or by Node's name of another platform; null: it
 * is unknown.
 */
export function decideFamily(platform: string, osRelease: string): Family | null {
  if (platform === 'darwin') return 'macos'
  const ids = [...osRelease.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].flatMap(([, text = '']) =>
    text.split(' '),
  )
  const known = ids.flatMap((id) => (Object.hasOwn(FAMILIES, id) ? [FAMILIES[id]] : []))
  return known[0] ?? null
}

const FAMILIES: Readonly<Record<string, Family>> = {
  debian: 'debian',
  ubuntu: 'debian',
  fedora: 'fedora',
  rhel: 'fedora',
  centos: 'fedora',
  arch: 'arch',
  suse: 'suse',
  opensuse: 'suse',
}

const gib = (bytes: number) => (bytes / 2 ** 30).toFixed(bytes < 10 * 2 ** 30 ? 1 : 0)
