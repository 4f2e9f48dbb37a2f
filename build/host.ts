/** What a host must have to make images, and what to install where it has not. */

interface Need {
  /** A program to be found in PATH, or a file. */
  readonly thing: string
  /** The Debian package that brings it. */
  readonly package: string
  readonly why: string
  /** For whom: everybody; who compiles iPXE. */
  readonly when: 'always' | 'ipxe-source'
}

export interface HostFacts {
  readonly compilesIpxe: boolean
  readonly has: (thing: string) => boolean
}

export const NEEDS: readonly Need[] = [
  { thing: 'apt-get', package: 'apt', why: 'fetches packages', when: 'always' },
  { thing: 'dpkg-deb', package: 'dpkg', why: 'unpacks packages', when: 'always' },
  {
    thing: '/usr/share/keyrings/debian-archive-keyring.gpg',
    package: 'debian-archive-keyring',
    why: 'knows who signed packages',
    when: 'always',
  },
  { thing: 'python3', package: 'python3', why: 'runs mkosi', when: 'always' },
  { thing: 'flock', package: 'util-linux', why: 'keeps two builds apart', when: 'always' },
  { thing: 'git', package: 'git', why: 'tells the date of the sources', when: 'always' },
  { thing: 'gcc', package: 'gcc', why: 'compiles iPXE', when: 'ipxe-source' },
  { thing: 'make', package: 'make', why: 'compiles iPXE', when: 'ipxe-source' },
  { thing: 'perl', package: 'perl', why: 'compiles iPXE', when: 'ipxe-source' },
  {
    thing: '/usr/include/lzma.h',
    package: 'liblzma-dev',
    why: 'compiles iPXE',
    when: 'ipxe-source',
  },
  {
    thing: 'aarch64-linux-gnu-gcc',
    package: 'gcc-aarch64-linux-gnu',
    why: 'compiles iPXE for arm64',
    when: 'ipxe-source',
  },
]

/** Bytes below which a first build may not fit: trees, packages and what is made of them. */
export const ROOM_BYTES = 6 * 2 ** 30

export const needsFor = ({ compilesIpxe }: HostFacts): readonly Need[] =>
  NEEDS.filter(({ when }) => when === 'always' || compilesIpxe)

export const findMissing = (facts: HostFacts): readonly Need[] =>
  needsFor(facts).filter(({ thing }) => !facts.has(thing))

interface MachineFacts {
  /** As Node calls them: `linux`, `x64`. */
  readonly platform: string
  readonly arch: string
  /** A tree or a compiler is asked for; laying a script beside Debian's iPXE is for any machine. */
  readonly makesPrograms: boolean
}

/** Null: images can be made on it; else why not, for people. */
export function findMachineObstacle({ platform, arch, makesPrograms }: MachineFacts) {
  if (platform !== 'linux') return `images are made on Linux, and this is ${platform}`
  return makesPrograms && arch !== 'x64'
    ? `images are made on x86-64, and this is ${arch}: here only ipxe-efi is made`
    : null
}

/** The last words of a program that failed. */
export const renderTail = (said: string, most = 10): string =>
  said
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '')
    .slice(-most)
    .join('\n')

/** The command that brings what is missing. */
export const renderInstall = (missing: readonly Need[]): string =>
  `apt-get install --no-install-recommends ${[...new Set(missing.map((need) => need.package))].toSorted().join(' ')}`
