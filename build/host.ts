/** What building images requires of a host, and which packages provide it. */

interface Need {
  /** A program to be found in PATH, or a file. */
  readonly thing: string
  /** The Debian package that brings it. */
  readonly package: string
  readonly why: string
  /** Always, only to compile iPXE, or only for images of arm64. */
  readonly when: 'always' | 'ipxe-source' | 'arm64'
}

export interface HostFacts {
  readonly compilesIpxe: boolean
  readonly makesArm64: boolean
  readonly has: (thing: string) => boolean
}

/** The line by which the kernel runs programs of arm64 in QEMU (binfmt.d(5)). */
export const ARM64_PROGRAMS = '/usr/lib/binfmt.d/qemu-aarch64.conf'

export const NEEDS: readonly Need[] = [
  { thing: 'apt-get', package: 'apt', why: 'fetches packages', when: 'always' },
  { thing: 'dpkg-deb', package: 'dpkg', why: 'unpacks packages', when: 'always' },
  {
    thing: '/usr/share/keyrings/debian-archive-keyring.gpg',
    package: 'debian-archive-keyring',
    why: 'verifies signatures of packages',
    when: 'always',
  },
  { thing: 'python3', package: 'python3', why: 'runs mkosi', when: 'always' },
  {
    thing: 'flock',
    package: 'util-linux',
    why: 'keeps two builds from sharing a folder',
    when: 'always',
  },
  { thing: 'git', package: 'git', why: 'provides the date of the sources', when: 'always' },
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
  {
    thing: ARM64_PROGRAMS,
    package: 'qemu-user-static',
    why: 'runs programs of arm64',
    when: 'arm64',
  },
]

/** Free bytes that a first build requires for trees, packages and images. */
export const ROOM_BYTES = 6 * 2 ** 30

export function needsFor({ compilesIpxe, makesArm64 }: HostFacts): readonly Need[] {
  const isNeeded = { always: true, 'ipxe-source': compilesIpxe, arm64: makesArm64 }
  return NEEDS.filter(({ when }) => isNeeded[when])
}

/** Lists what this host does not have of what a build requires. */
export const findMissing = (facts: HostFacts): readonly Need[] =>
  needsFor(facts).filter(({ thing }) => !facts.has(thing))

interface MachineFacts {
  /** In Node's spelling: `linux`, `x64`. */
  readonly platform: string
  readonly arch: string
  /** Whether a tree is built or iPXE compiled; adding a script to Debian's iPXE works on any machine. */
  readonly makesPrograms: boolean
}

/** Says why images cannot be built on a machine, for people; null when they can. */
export function findMachineObstacle({ platform, arch, makesPrograms }: MachineFacts) {
  if (platform !== 'linux') return `images can only be built on Linux, and this is ${platform}`
  return makesPrograms && arch !== 'x64'
    ? `images can only be built on x86-64, and this is ${arch}; only ipxe-efi can be built here`
    : null
}

/** Returns the last `max` lines of a program's output that are not blank. */
export const renderTail = (said: string, max = 10): string =>
  said
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '')
    .slice(-max)
    .join('\n')

/** Renders the command that installs what is missing. */
export const renderInstall = (missing: readonly Need[]): string =>
  `apt-get install --no-install-recommends ${[...new Set(missing.map((need) => need.package))].toSorted().join(' ')}`
