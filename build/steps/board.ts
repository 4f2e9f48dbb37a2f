/** The stick for single-board computers, compressed. */
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'

interface BoardOptions {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The tree of packages: the kernel's device trees lie in it. */
  readonly tree: string
  /** The root below which the files of Debian's boot packages lie. */
  readonly packages: string
  readonly facts: BuildFacts
}

/** Levels of gzip: nearly all of it is compressed already, the kernel is not. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 1, release: 9 }

/** Plans the step that makes `image.img.gz`. */
export function boardStep({ facts, ...inputs }: BoardOptions): Step {
  const values = {
    ...inputs,
    version: facts.version,
    epoch: String(facts.epoch),
    level: String(LEVELS[facts.level]),
    out: '@board/image.img.gz',
  }
  return programStep(
    'board',
    Object.entries(values).flatMap(([option, value]) => [`--${option}`, value]),
    {
      name: 'board',
      says: 'stick for Raspberry Pi and UEFI on arm64',
      inputs: Object.values(inputs),
      makes: ['image.img.gz'],
      tools: true,
    },
  )
}
