/** Runs the steps of a plan, or takes their outcome from the cache when no input has changed. */
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { digestSource } from '#build/cache/digest.ts'
import { keyOf, ownerOf, resolveWord, sharedFolder } from '#build/cache/key.ts'
import { createStore, type Entry, type Proof } from '#build/cache/store.ts'
import { readTail, runChild } from './child.ts'
import { INTERRUPTED, parseDurations, type BuildEvent, type Durations } from './progress.ts'
import type { Step } from '#build/steps/step.ts'

export interface RunOptions {
  readonly steps: readonly Step[]
  /** Programs start here, and relative inputs lie below. */
  readonly checkout: string
  /** Holds outcomes, logs and durations of steps; lies outside the checkout. */
  readonly cache: string
  /** Holds the folders that steps share between builds; default: `cache`. */
  readonly shared?: string
  /** Durations are kept for each pace, because a release build takes longer; default: `dev`. */
  readonly pace?: string
  /** How a cached outcome is verified before it is used; default: `listing`. */
  readonly proof?: Proof
  readonly say: (event: BuildEvent) => void
  /** Ends the step that is running; what it has made so far is removed. */
  readonly signal?: AbortSignal
}

type Outcome =
  | { readonly ok: true; readonly pathOf: (token: string) => string }
  | { readonly ok: false; readonly step: string }

/**
 * Runs steps one after the other, in an order that their inputs allow; stops at the first failure.
 * Rejects before anything runs, when an input is missing in the checkout.
 */
export async function runSteps(options: RunOptions): Promise<Outcome> {
  const { steps, cache, shared = cache, say } = options
  requireInputs(options)
  const store = createStore(join(cache, 'steps'), options.proof)
  const made = new Map<string, Entry>()
  for (const folder of [join(cache, 'logs'), join(shared, 'locks')]) {
    await mkdir(folder, { recursive: true })
  }
  for (const step of steps) {
    const { name, says } = step
    const digests = await Promise.all(step.inputs.map((input) => digestInput(input, made, options)))
    const key = keyOf({ step, digests, node: process.version })
    const known = await store.find(name, key)
    const entry = known ?? (await makeStep({ step, key, store, made, options }))
    if (entry === null) return { ok: false, step: name }
    made.set(name, entry)
    if (known !== null) say({ event: 'cached', step: name, says, bytes: sizeOf(known) })
  }
  return { ok: true, pathOf: (token) => resolveWord(token, (head) => folderOf(head, made)) }
}

const sizeOf = ({ made }: Entry) => Object.values(made).reduce((sum, { bytes }) => sum + bytes, 0)

interface StepOptions {
  readonly step: Step
  readonly key: string
  readonly store: ReturnType<typeof createStore>
  readonly made: ReadonlyMap<string, Entry>
  readonly options: RunOptions
}

/** Null when it failed or was interrupted; `say` has reported it. */
async function makeStep({ step, key, store, made, options }: StepOptions): Promise<Entry | null> {
  const { name, says } = step
  const { cache, say, signal = NEVER } = options
  const log = join(cache, 'logs', `${name}.log`)
  say({ event: 'started', step: name, says, log })
  const start = performance.now()
  const part = await store.open(name, key)
  const why = await runStep({ step, part, log, made, options })
  const entry = why === null ? await store.keep(name, key, part, step.makes) : why
  if (typeof entry === 'string') {
    if (signal.aborted) await rm(part, { recursive: true, force: true })
    const tail = signal.aborted ? [] : await readTail(log)
    say({ event: 'failed', step: name, why: entry, log, tail })
    return null
  }
  const seconds = (performance.now() - start) / 1000
  await recordDuration(options, name, seconds)
  say({ event: 'made', step: name, says, seconds, bytes: sizeOf(entry) })
  await store.prune(name)
  return entry
}

const NEVER = new AbortController().signal

type Pace = Pick<RunOptions, 'cache' | 'pace'>

/**
 * Reads how many seconds each step took when it last ran here; nothing is known where there is no
 * such file.
 */
export async function readDurations(pace: Pace): Promise<Durations> {
  return parseDurations(await readFile(durationsFile(pace), 'utf8').catch(() => '{}'))
}

interface StepRun {
  readonly step: Step
  readonly part: string
  readonly log: string
  readonly made: ReadonlyMap<string, Entry>
  readonly options: RunOptions
}

async function runStep({ step, part, log, made, options }: StepRun): Promise<string | null> {
  const { checkout, cache, shared = cache, signal = NEVER } = options
  const place = (token: string) => {
    if (token.startsWith('%')) return join(shared, token.slice(1))
    return token === `@${step.name}` ? part : folderOf(token, made)
  }
  const [program = '', ...args] = step.argv.map((word) => resolveWord(word, place))
  const argv = [program === 'node' ? process.execPath : program, ...args]
  const folder = sharedFolder(step)
  const lock = folder === null ? null : join(shared, 'locks', folder)
  if (signal.aborted) return INTERRUPTED
  return await runChild({ argv, cwd: checkout, env: step.env ?? {}, log, lock, signal })
}

const folderOf = (token: string, made: ReadonlyMap<string, Entry>) =>
  made.get(token.slice(1))?.folder ?? token

function requireInputs({ steps, checkout }: RunOptions): void {
  for (const { name, inputs } of steps) {
    const missing = inputs.find(
      (input) => ownerOf(input) === null && !existsSync(resolve(checkout, input)),
    )
    if (missing !== undefined) {
      throw new Error(`the step ${name} reads ${missing}, which does not exist`)
    }
  }
}

async function digestInput(
  input: string,
  made: ReadonlyMap<string, Entry>,
  { checkout }: RunOptions,
): Promise<string> {
  const owner = ownerOf(input)
  if (owner === null) return await digestSource(input, checkout)
  const [, path = ''] = input.split('/')
  const digest = made.get(owner)?.made[path]?.digest
  if (digest === undefined) throw new Error(`${input} is an input, but no step before makes it`)
  return digest
}

const durationsFile = ({ cache, pace = 'dev' }: Pace) => join(cache, `durations-${pace}.json`)

async function recordDuration(pace: Pace, name: string, seconds: number): Promise<void> {
  const file = durationsFile(pace)
  const durations = { ...(await readDurations(pace)), [name]: Math.round(seconds * 10) / 10 }
  await writeFile(`${file}.${process.pid}`, JSON.stringify(durations))
  await rename(`${file}.${process.pid}`, file)
}
