/** The disk of the server appliance, compressed. */
import type { Arch } from '#appliance/appliance.ts'
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

interface ServerDiskOptions {
  readonly name: string
  readonly arch: Arch
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The root below which the files of Debian's boot packages lie. */
  readonly packages: string
  /** For boards: the tree of packages, with the kernel's device trees, and U-Boot. */
  readonly board?: { readonly tree: string; readonly uboot: string }
  readonly facts: BuildFacts
}

const SAYS: Readonly<Record<Arch, string>> = {
  x86_64: 'disk of the server appliance',
  arm64: 'disk of the arm64 server appliance',
}
/** Levels of zstd: nearly all of it is compressed already. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 1, release: 19 }

/** Plans the step that makes `disk.img.zst`. */
export function serverDiskStep(options: ServerDiskOptions): Step {
  const { name, arch, kernel, initrd, squashfs, packages, board = {}, facts } = options
  const files = { kernel, initrd, squashfs, packages, ...board }
  const values = {
    arch,
    ...files,
    version: facts.version,
    epoch: String(facts.epoch),
    level: String(LEVELS[facts.level]),
    out: `@${name}/disk.img.zst`,
  }
  return programStep(
    'server-disk',
    Object.entries(values).flatMap(([option, value]) => [`--${option}`, value]),
    {
      name,
      says: SAYS[arch],
      inputs: Object.values(files),
      makes: ['disk.img.zst'],
      tools: true,
    },
  )
}
