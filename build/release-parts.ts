/** Plans what a release has besides images: documentation, sources, npm package. */
import { checksumsOf, documentsFile, npmTarball, sourceArchive, stemOf } from '#appliance/assets.ts'
import type { Bundle } from './bundles.ts'
import { MKOSI, type Plan } from './plan.ts'
import { documentStep, documentToolsStep } from '#build/steps/document.ts'
import { npmPackageStep } from '#build/steps/npm-package.ts'
import { sourceStep } from '#build/steps/source.ts'
import type { BuildFacts } from '#build/steps/step.ts'

/**
 * Plans these parts.
 *
 * @param sources are what git tracks at the top of the checkout.
 */
export function planParts(facts: BuildFacts, sources: readonly string[]): Plan {
  const { version } = facts
  return {
    steps: [
      MKOSI,
      documentToolsStep,
      documentStep(facts),
      sourceStep(facts, sources),
      npmPackageStep(facts),
    ],
    bundles: [
      {
        ...single(documentsFile(version), '@document/flasher.pdf'),
        packages: [
          {
            title: 'of the tools that made it',
            from: '@document-tools/packages.json',
            within: false,
          },
        ],
      },
      single(sourceArchive(version), '@source/source.tar.gz'),
      {
        ...single(npmTarball(version), '@npm-package/package.tgz'),
        npm: ['@npm-package/packages.json'],
      },
    ],
  }
}

const single = (asset: string, from: string): Bundle => ({
  appliance: 'release',
  stem: stemOf(asset),
  checksums: checksumsOf(asset),
  files: [{ asset, from }],
  packages: [],
  npm: [],
  programs: [],
})

/** Both plans as one; a step that both have runs once. */
export function joinPlans(one: Plan, another: Plan): Plan {
  const names = new Set(one.steps.map(({ name }) => name))
  return {
    steps: [...one.steps, ...another.steps.filter(({ name }) => !names.has(name))],
    bundles: [...one.bundles, ...another.bundles],
  }
}
