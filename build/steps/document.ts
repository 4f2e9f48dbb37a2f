/** The documentation as a PDF, made by tools in a tree of their own: only releases need them. */
import { programStep, type BuildFacts, type Step } from './step.ts'
import { withToolsOf } from './tools.ts'

const CONF = 'build/document/tools.conf'

export const documentToolsStep: Step = programStep(
  'tools',
  ['--mkosi', '@mkosi/root', '--conf', CONF, '--cache', '%mkosi', '--out', '@document-tools'],
  {
    name: 'document-tools',
    says: 'tools that print the documentation',
    inputs: ['@mkosi/root', CONF],
    makes: ['root', 'packages.json'],
  },
)

/** Plans the step that makes `flasher.pdf`. */
export function documentStep({ version, epoch }: BuildFacts): Step {
  const values = { docs: 'docs', version, epoch: String(epoch), out: '@document/flasher.pdf' }
  const step = programStep(
    'document',
    Object.entries(values).flatMap(([option, value]) => [`--${option}`, value]),
    {
      name: 'document',
      says: 'documentation as a PDF',
      inputs: ['docs', 'build/document'],
      makes: ['flasher.pdf'],
    },
  )
  return withToolsOf('@document-tools/root', step)
}
