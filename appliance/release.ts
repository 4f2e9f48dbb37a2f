/** What a release of each line consists of ("Release artifacts"). */
import {
  boardImage,
  commonDebFiles,
  checksumsOf,
  debFile,
  documentsFile,
  ipxeFile,
  LIVE_STEM,
  LIVE_SUMS,
  LIVE_TRIO,
  LIVE_USB,
  netbootStem,
  netbootTrio,
  npmTarball,
  secureBootFiles,
  secureBootStem,
  serverImage,
  serverUpdate,
  sourceArchive,
  STICK_FILES,
  STICK_STEM,
  stemOf,
  usbIso,
} from './assets.ts'
import { ARCHS } from './appliance.ts'

export const RELEASE_LINES = ['current', 'earlier'] as const
export type ReleaseLine = (typeof RELEASE_LINES)[number]

/** Files that share a list of checksums, a bill of materials and a list of packages. */
export interface AssetGroup {
  readonly files: readonly string[]
  readonly checksums: string
  /** Begins the names of the bill and of the list; null: another group's tell of these files, too. */
  readonly stem: string | null
  /** Whether a release lacks something without these files; false: they are added where they were built. */
  readonly isSpecified: boolean
}

export const RELEASES: Readonly<Record<ReleaseLine, (version: string) => readonly AssetGroup[]>> = {
  current: (version) => [
    alone(usbIso('x86_64', version)),
    alone(boardImage(version)),
    beside(stickGroup()),
    ...ARCHS.map((arch) => alone(ipxeFile(arch, version))),
    netbootGroup('x86_64', version),
    beside(netbootGroup('arm64', version)),
    ...ARCHS.map((arch) => beside(secureBootGroup(arch, version))),
    ...ARCHS.map((arch) => beside(alone(serverImage(arch)))),
    ...ARCHS.map((arch) => beside(updateGroup(arch, version))),
    ...ARCHS.map((arch) => beside(debGroup(arch, version))),
    alone(documentsFile(version)),
    alone(sourceArchive(version)),
  ],
  earlier: (version) => [
    alone(LIVE_USB),
    ...ARCHS.map((arch) => alone(serverImage(arch))),
    ...ARCHS.map((arch) => beside(updateGroup(arch, version))),
    liveGroup(),
    alone(documentsFile(version)),
    alone(npmTarball(version)),
    alone(sourceArchive(version)),
  ],
}

const alone = (file: string): AssetGroup => ({
  files: [file],
  checksums: checksumsOf(file),
  stem: stemOf(file),
  isSpecified: true,
})

const beside = (group: AssetGroup): AssetGroup => ({ ...group, isSpecified: false })

function netbootGroup(arch: (typeof ARCHS)[number], version: string): AssetGroup {
  const stem = netbootStem(arch, version)
  const files = Object.values(netbootTrio(arch, version))
  return { files, checksums: checksumsOf(stem), stem, isSpecified: true }
}

function secureBootGroup(arch: (typeof ARCHS)[number], version: string): AssetGroup {
  const stem = secureBootStem(arch, version)
  const files = Object.values(secureBootFiles(arch, version))
  return { files, checksums: checksumsOf(stem), stem, isSpecified: true }
}

/** The packages that are for every processor are built with those of PCs. */
function debGroup(arch: (typeof ARCHS)[number], version: string): AssetGroup {
  const file = debFile(arch, version)
  const files = [file, ...(arch === 'x86_64' ? commonDebFiles(version) : [])]
  return { files, checksums: checksumsOf(file), stem: stemOf(file), isSpecified: true }
}

/** What an installed server updates itself with. */
function updateGroup(arch: (typeof ARCHS)[number], version: string): AssetGroup {
  const { kernel, initrd, squashfs } = serverUpdate(arch, version)
  const checksums = checksumsOf(kernel.replace(/\.vmlinuz$/, ''))
  return { files: [kernel, initrd, squashfs], checksums, stem: null, isSpecified: true }
}

const stickGroup = (): AssetGroup => ({
  files: Object.values(STICK_FILES),
  checksums: checksumsOf(STICK_STEM),
  stem: STICK_STEM,
  isSpecified: true,
})

const liveGroup = (): AssetGroup => ({
  files: Object.values(LIVE_TRIO),
  checksums: LIVE_SUMS,
  stem: LIVE_STEM,
  isSpecified: true,
})
