/** The hybrid ISO: stick and disc in one file. */
import type { Arch } from '../../appliance/appliance.ts'
import { programStep, type BuildFacts, type Step } from './step.ts'

interface IsoOptions {
  readonly name: string
  readonly arch: Arch
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The root below which the files of Debian's boot packages lie. */
  readonly packages: string
  readonly facts: BuildFacts
}

export function isoStep({
  name,
  arch,
  kernel,
  initrd,
  squashfs,
  packages,
  facts,
}: IsoOptions): Step {
  return programStep(
    'iso',
    Object.entries({
      kernel,
      initrd,
      squashfs,
      packages,
      version: facts.version,
      epoch: String(facts.epoch),
      out: `@${name}/image.iso`,
    }).flatMap(([option, value]) => [`--${option}`, value]),
    {
      name,
      says: `ISO for sticks and discs (${arch})`,
      inputs: [kernel, initrd, squashfs, packages],
      makes: ['image.iso'],
      tools: true,
    },
  )
}
