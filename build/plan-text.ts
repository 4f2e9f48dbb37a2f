/** Renders a plan for people. */
import type { Plan } from './plan.ts'
import type { Step } from '#build/steps/step.ts'

/** Renders steps and files. Commands are shown as planned: `@step` stands for a step's folder. */
export function renderPlan({ steps, bundles }: Plan): string {
  const files = bundles.map(({ appliance, files: each, checksums }) =>
    [
      appliance,
      ...each.map(({ asset, from }) => `    ${asset}  ←  ${from}`),
      `    ${checksums}`,
    ].join('\n'),
  )
  return [...steps.map(renderStep), ...files].join('\n\n')
}

const renderStep = ({ name, says, argv, inputs, makes }: Step) =>
  [
    `${name}: ${says}`,
    `    runs   ${argv.map(quote).join(' ')}`,
    `    reads  ${inputs.join(' ') || 'nothing here'}`,
    `    makes  ${makes.map((path) => `@${name}/${path}`).join(' ')}`,
  ].join('\n')

const quote = (word: string) => (/^[\w@%/.:=,+-]+$/.test(word) ? word : `'${word}'`)
