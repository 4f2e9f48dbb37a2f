/** The sources of a release as one archive. */
import { sourceStem } from '#appliance/assets.ts'
import { programStep, type BuildFacts, type Step } from './step.ts'

/**
 * Plans the step that makes `source.tar.gz`; `sources` are what git tracks at the top of the
 * checkout.
 */
export const sourceStep = ({ version, epoch }: BuildFacts, sources: readonly string[]): Step =>
  programStep(
    'source',
    [
      '--folder',
      sourceStem(version),
      '--epoch',
      String(epoch),
      '--out',
      '@source/source.tar.gz',
      ...sources,
    ],
    {
      name: 'source',
      says: 'source archive',
      inputs: sources,
      makes: ['source.tar.gz'],
    },
  )
