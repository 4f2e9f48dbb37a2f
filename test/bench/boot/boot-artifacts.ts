/** Everything that is booted and weighed, made by the builder or taken from its cache, in a folder of its own. */
import { statSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { APPLIANCES } from '#appliance/all.ts'
import { checksumsOf, ipxeFile, netbootStem, netbootTrio, usbIso } from '#appliance/assets.ts'
import { CHECKOUT, cacheFolder, readEpoch, readVersion } from '#build/facts.ts'
import { planImages } from '#build/plan.ts'
import { renderEvent } from '#build/progress.ts'
import { runSteps } from '#build/run.ts'
import type { Level } from '#build/steps/step.ts'
import type { Trio } from '#test/support/vm/built-images.ts'
import { peerStep } from './boot-peer.ts'

export interface Artifacts extends AsyncDisposable {
  readonly trio: Trio
  readonly iso: string
  readonly ipxe: string
  /** The trio with the initrd that we are compared with. */
  readonly peer: Trio
}

/** `say` hears what the builder does. Needs root. */
export async function makeArtifacts(level: Level, say: (line: string) => void): Promise<Artifacts> {
  const version = readVersion(CHECKOUT)
  // As while developing: a commit that changes no image builds nothing anew.
  const facts = { version, epoch: readEpoch(CHECKOUT, 'dev', process.env), level }
  const plan = planImages({ appliances: APPLIANCES, facts, ipxeServer: null, ipxeSource: null })
  const outcome = await runSteps({
    steps: [...plan.steps, peerStep],
    checkout: CHECKOUT,
    cache: cacheFolder(process.env),
    say: (event) => say(renderEvent(event)),
  })
  if (!outcome.ok) throw new Error(`the step ${outcome.step} failed`)

  // Copies: the cache drops what others' builds do not need.
  const folder = await mkdtemp(join(tmpdir(), 'flasher-bench-boot-'))
  const peerInitrd = join(folder, 'dracut.initrd')
  for (const { asset, from } of plan.bundles.flatMap(({ files }) => files)) {
    await copyFile(outcome.pathOf(from), join(folder, asset))
  }
  await copyFile(outcome.pathOf('@bench-peer/initrd'), peerInitrd)
  const { kernel, initrd, squashfs } = netbootTrio('x86_64', version)
  const trio = {
    kernel: join(folder, kernel),
    initrd: join(folder, initrd),
    squashfs: join(folder, squashfs),
    checksums: join(folder, checksumsOf(netbootStem('x86_64', version))),
  }
  return {
    trio,
    iso: join(folder, usbIso('x86_64', version)),
    ipxe: join(folder, ipxeFile('x86_64', version)),
    peer: { ...trio, initrd: peerInitrd },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

/** What a machine fetches before its root: kernel and initrd, in bytes. */
export const weighKernel = ({ kernel, initrd }: Trio) => weigh(kernel) + weigh(initrd)

/** Returns the size of a file in bytes. */
export const weigh = (path: string) => statSync(path).size
