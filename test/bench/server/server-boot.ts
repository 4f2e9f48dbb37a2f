/** Large files: what eight machines at a time get, and what a GiB costs, beside nginx and a pipe. */
import { existsSync } from 'node:fs'
import { createFolder, LARGE_BYTES, LARGE_FILE } from './server-fixture.ts'
import { ratioOf, runLoad, type Bar } from './server-jobs.ts'
import type { Load } from './server-load.ts'
import { startBare, startFlasher, startNginx, type Subject } from './server-subjects.ts'

export interface BootRow {
  readonly subject: string
  readonly loads: readonly Load[]
  /** The ratio to a bare node:http pipe, in bytes a second. */
  readonly toHttp: number
}

const STREAMS = 8
const PIPE = 'bare node:http'
const NGINX = 'nginx, sendfile on'
const speedOf = ({ bytes, seconds }: Load) => bytes / seconds

export async function measureBoot(runs: number) {
  await using folder = await createFolder(0)
  const { bootDir } = folder
  await using stack = new AsyncDisposableStack()
  const subjects: Subject[] = [
    stack.use(await startFlasher(folder)),
    stack.use(await startBare({ kind: 'http', answers: [], bootDir })),
    stack.use(await startBare({ kind: 'h3', answers: [], bootDir })),
  ]
  if (existsSync('/usr/sbin/nginx')) {
    for (const sendfile of ['off', 'on'] as const) {
      subjects.push(stack.use(await startNginx(bootDir, sendfile)))
    }
  } else console.error('nginx is missing (package nginx-light): left out')
  const loads = new Map<string, Load[]>(subjects.map(({ name }) => [name, []]))
  for (let run = 0; run < runs; run += 1) {
    for (const subject of subjects) {
      const path = `/boot/${LARGE_FILE}`
      const task = { kind: 'streams', streams: STREAMS, path, bytes: LARGE_BYTES } as const
      const load = await runLoad(task, subject)
      loads.get(subject.name)?.push(load)
      console.error(`/boot/ ${subject.name}: ${(speedOf(load) / 2 ** 20).toFixed(0)} MiB/s`)
    }
  }
  const ratio = (name: string, to: string) =>
    ratioOf(loads.get(name) ?? [], loads.get(to) ?? [], speedOf)
  const rows: readonly BootRow[] = subjects.map(({ name }) => ({
    subject: name,
    loads: loads.get(name) ?? [],
    toHttp: ratio(name, PIPE),
  }))
  const bars: Bar[] = [
    {
      what: '/boot/, ratio to a bare node:http pipe',
      value: ratio('flasher', PIPE),
      limit: 0.9,
      is: 'least',
    },
  ]
  if (loads.has(NGINX)) {
    const value = ratio('flasher', NGINX)
    bars.push({ what: '/boot/, ratio to nginx with sendfile', value, limit: 0.5, is: 'least' })
  }
  return { rows, bars }
}
