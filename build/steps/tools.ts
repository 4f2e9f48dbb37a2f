/** The tools that build images, from one Debian release, so that their versions are the same on any host. */
import { programStep, type Step } from './step.ts'

const TOOLS_CONF = 'mkosi.conf.d/00-tools.conf'

/** A tree of programs, which steps with `tools: true` see as their `/usr`. */
export const toolsStep: Step = programStep(
  'tools',
  ['--mkosi', '@mkosi/root', '--conf', TOOLS_CONF, '--cache', '%mkosi', '--out', '@tools'],
  {
    name: 'tools',
    says: 'tools that build images',
    inputs: ['@mkosi/root', TOOLS_CONF],
    makes: ['root', 'packages.json'],
  },
)

/**
 * Wraps a step with `tools: true` so that it runs inside the tools tree; any other stays as it is.
 */
export const withTools = (step: Step): Step =>
  step.tools === undefined ? step : withToolsOf('@tools/root', step)

/** Wraps a step so that it runs inside a tree of tools. */
export const withToolsOf = (tree: string, step: Step): Step => ({
  ...step,
  argv: ['node', 'build/programs/box.ts', '@mkosi/root', tree, ...step.argv],
  inputs: ['build/programs/box.ts', '@mkosi/root', tree, ...step.inputs],
})
