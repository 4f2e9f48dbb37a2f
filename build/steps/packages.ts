/** Files from Debian packages, without installing them. */
import { programStep, type Step } from './step.ts'

interface PackagesOptions {
  readonly name: string
  readonly says: string
  readonly suite: string
  /** Debian's name of it: `amd64`. */
  readonly arch: string
  readonly packages: readonly string[]
}

/**
 * Plans the step that makes `root` with the files of all packages, and `packages.json` with the
 * name, version and architecture of each.
 */
export function packagesStep({ name, says, suite, arch, packages }: PackagesOptions): Step {
  const state = `%apt/${suite}-${arch}`
  const out = ['--out', `@${name}/root`, '--list', `@${name}/packages.json`]
  return programStep(
    'packages',
    ['--suite', suite, '--arch', arch, '--state', state, ...out, ...packages],
    { name, says, inputs: [], makes: ['root', 'packages.json'] },
  )
}
