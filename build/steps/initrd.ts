/** Initrds of our own: an archive that names the only root, and one of drivers and scripts. */
import type { Arch } from '#appliance/appliance.ts'
import type { Variant } from '#build/initrd/choices.ts'
import { programStep, type BuildFacts, type Level, type Step } from './step.ts'
import { PACKAGES_EPOCH } from './tree.ts'
import { zstdStep } from './zstd.ts'

interface FilesOptions {
  /** The name of the initrd. */
  readonly name: string
  readonly kind: Variant
  readonly arch: Arch
  /** The root tree: drivers, firmware and busybox come from it. */
  readonly tree: string
  readonly facts: BuildFacts
}

interface InitrdStepOptions extends Pick<FilesOptions, 'name' | 'kind' | 'facts'> {
  /** The name of the initrd whose drivers and scripts it has; absent: it has its own. */
  readonly sharesFilesOf?: string
  readonly squashfs: string
  /** Its name on a server. */
  readonly squashfsName: string
}

const OVERLAY = 'overlays/initrd'
const SAYS = {
  netboot: 'initrd for booting from the network',
  media: 'initrd for booting from a stick or disc',
  slot: 'initrd of the server appliance',
} as const
/** Levels of zstd; 19 takes some 15 seconds longer and saves a fifth. */
const LEVELS: Readonly<Record<Level, number>> = { dev: 9, release: 19 }

const ARCHIVE = 'files.cpio'
/** `netboot-files` and `netboot-zst` of `initrd-netboot`. */
const stemOf = (name: string) => name.replace(/-?initrd-?/, '')
const filesOf = (name: string) => `${stemOf(name)}-files`
const compressedOf = (name: string) => `${stemOf(name)}-zst`

/**
 * Plans the steps that make an archive of drivers, programs and scripts, and the same compressed,
 * which is made anew only where the archive has other bytes: a change in our programs makes another
 * root, but not another archive.
 */
export function initrdFilesSteps({ name, kind, arch, tree, facts }: FilesOptions): readonly Step[] {
  const [files, compressed] = [filesOf(name), compressedOf(name)]
  const values = {
    tree,
    overlay: OVERLAY,
    variant: kind,
    arch,
    epoch: String(PACKAGES_EPOCH),
    out: `@${files}/${ARCHIVE}`,
  }
  return [
    programStep('initrd-files', optionsOf(values), {
      name: files,
      says: 'drivers and scripts',
      inputs: [OVERLAY, tree],
      makes: [ARCHIVE],
    }),
    zstdStep({
      name: compressed,
      says: 'drivers and scripts, compressed',
      from: `@${files}/${ARCHIVE}`,
      makes: `${ARCHIVE}.zst`,
      level: LEVELS[facts.level],
    }),
  ]
}

/**
 * Plans the step that makes `initrd` from such a compressed archive; it takes no root but
 * `squashfs`.
 */
export function initrdStep(options: InitrdStepOptions): Step {
  const { name, kind, sharesFilesOf = name, squashfs, squashfsName, facts } = options
  const files = `@${compressedOf(sharesFilesOf)}/${ARCHIVE}.zst`
  const values = {
    files,
    version: facts.version,
    epoch: String(facts.epoch),
    squashfs,
    name: squashfsName,
    out: `@${name}/initrd`,
  }
  return programStep('initrd', optionsOf(values), {
    name,
    says: SAYS[kind],
    inputs: [files, squashfs],
    makes: ['initrd'],
  })
}

const optionsOf = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).flatMap(([option, value]) => [`--${option}`, value])
