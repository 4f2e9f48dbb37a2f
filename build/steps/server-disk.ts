/** The disk of the server appliance, compressed. */
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

interface ServerDiskOptions {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The root below which the files of Debian's boot packages lie. */
  readonly packages: string
  readonly facts: BuildFacts
}

/** Levels of zstd: nearly all of it is compressed already. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 1, release: 19 }

export function serverDiskStep({
  kernel,
  initrd,
  squashfs,
  packages,
  facts,
}: ServerDiskOptions): Step {
  const values = {
    kernel,
    initrd,
    squashfs,
    packages,
    version: facts.version,
    epoch: String(facts.epoch),
    level: String(LEVELS[facts.level]),
    out: '@server-disk/disk.img.zst',
  }
  return programStep(
    'server-disk',
    Object.entries(values).flatMap(([option, value]) => [`--${option}`, value]),
    {
      name: 'server-disk',
      says: 'disk of the server appliance',
      inputs: [kernel, initrd, squashfs, packages],
      makes: ['disk.img.zst'],
      tools: true,
    },
  )
}
