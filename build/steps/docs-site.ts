/** The documentation as a site, which servers bring. */
import { programStep, type Step } from './step.ts'

const SITE = '@docs-site/site'

export const docsSiteStep: Step = programStep(
  'docs-site',
  ['--docs', 'docs', '--readme', 'README.md', '--out', SITE],
  {
    name: 'docs-site',
    says: 'documentation as a site',
    inputs: ['docs', 'README.md', 'build/document', 'package.json', 'pnpm-lock.yaml'],
    makes: ['site'],
  },
)
