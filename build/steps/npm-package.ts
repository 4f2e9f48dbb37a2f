/** What npm installs, packed. */
import { programStep, type BuildFacts, type Step } from './step.ts'

/** What is compiled, or goes into the package as it is. */
const INPUTS = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'appliance',
  'build',
  'docs',
  'package.json',
  'runtime',
  'tsconfig.json',
] as const

/** Plans the step that makes `package.tgz`, and the list of its dependencies, `packages.json`. */
export const npmPackageStep = ({ epoch }: BuildFacts): Step =>
  programStep(
    'npm-package',
    [
      '--epoch',
      String(epoch),
      '--out',
      '@npm-package/package.tgz',
      '--list',
      '@npm-package/packages.json',
      ...INPUTS,
    ],
    {
      name: 'npm-package',
      says: 'npm package',
      inputs: [...INPUTS, 'pnpm-lock.yaml'],
      makes: ['package.tgz', 'packages.json'],
    },
  )
