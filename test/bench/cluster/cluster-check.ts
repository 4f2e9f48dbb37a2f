/** Compares what the fleet has at the end with what was acknowledged to each machine. */
import { z } from 'zod'
import { createQueue } from '#kit/host/queue.ts'
import type { AskSite } from './cluster-ask.ts'
import type { Book } from './cluster-book.ts'
import type { StormMachine } from './cluster-machine.ts'

const FoundMachine = z.object({
  bty_image_ref: z.string().nullable(),
  last_flashed_at: z.string().nullable(),
  known_disks: z.array(z.object({ serial: z.string().nullable() })).nullable(),
})

const FoundRuns = z.object({ runs: z.array(z.object({ id: z.string(), state: z.string() })) })

const AT_ONCE = 8
const NEVER = new AbortController().signal

/** Each order, inventory and end that was acknowledged is there, and nothing that nobody did. */
export async function checkMachines(
  machines: readonly StormMachine[],
  ask: AskSite,
  book: Book,
): Promise<void> {
  const inTurn = createQueue(AT_ONCE)
  const read = async (path: string): Promise<unknown> =>
    JSON.parse((await ask.insist(path, {}, NEVER)).text)
  await Promise.all(machines.map((machine) => inTurn(() => checkMachine(machine, read, book))))
}

async function checkMachine(
  { mac, state }: StormMachine,
  read: (path: string) => Promise<unknown>,
  book: Book,
) {
  const { image, ended, begun, reported } = state()
  if (image === null) return
  const found = FoundMachine.parse(await read(`/machines/${mac}`))
  const { runs } = FoundRuns.parse(await read(`/machines/${mac}/runs?limit=200`))
  const lose = (text: string) => book.find('lost', `${mac}: ${text}`)
  if (found.bty_image_ref !== image.ref) lose(`has the image ${found.bty_image_ref}`)
  if (ended.size > 0 && found.last_flashed_at === null) lose('was never flashed')
  const mark = found.known_disks?.[1]?.serial ?? null
  if (!reported.allows(mark)) {
    lose(`has the inventory ${mark}, and may have ${reported.possible().join(', ')}`)
  }
  const stateOf = new Map(runs.map(({ id, state: is }) => [id, is]))
  for (const run of listLost(stateOf, ended, begun)) lose(run)
  book.count('runs compared', ended.size)
}

function listLost(
  stateOf: ReadonlyMap<string, string>,
  ended: ReadonlySet<string>,
  begun: ReadonlySet<string>,
): readonly string[] {
  const undone = [...ended].filter((run) => stateOf.get(run) !== 'done')
  const unknown = [...stateOf.keys()].filter((run) => !begun.has(run))
  return [
    ...undone.map((run) => `its run ${run} was done, and is ${stateOf.get(run)}`),
    ...unknown.map((run) => `has a run of nobody: ${run}`),
  ]
}
