/** Many machines that post large inventories at the same moment, to the real program. */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { createServerHome, login } from './flasher-web.ts'
import { macOf } from './state.ts'

const run = promisify(execFile)
const PASSWORD = 'secret words'

/** 1 MiB, as that of the largest servers. */
const TREE = JSON.stringify({
  id: 'box',
  size: 1,
  children: Array.from({ length: 4600 }, (_, n) => ({
    id: `pci:${n}`,
    class: 'bridge',
    claimed: true,
    handle: `PCI:0000:00:${n}`,
    product: `Host bridge number ${n}, second revision`,
    businfo: `pci@0000:00:${n}.0`,
    capabilities: { pci: true, pm: 'Power Management', msi: 'Message Signalled Interrupts' },
  })),
}).replace('"size":1', '"size": 18446744073709551615')

/**
 * All inventories are stored as they were sent; a client that gets a 503 posts again. Resolves to the longest
 * time that `/healthz` took meanwhile, in seconds.
 */
export async function postAtOnce(machines: number): Promise<number> {
  await using home = await createServerHome()
  await using server = await home.start([], {
    FLASHER_ADMIN_PASSWORD: PASSWORD,
    FLASHER_PXE_TOKENS: 'off',
  })
  const macs = Array.from({ length: machines }, (_, at) => macOf(at + 1))
  for (const mac of macs) assert.is((await fetch(`${server.url}/pxe/${mac}`)).status, 200)
  const ending = new AbortController()
  const health = watchHealth(server.url, ending.signal)
  const statuses = await Promise.all(macs.map((mac) => post(`${server.url}/pxe/${mac}/inventory`)))
  ending.abort()
  assert.equal([...new Set(statuses)], [204])
  const { cookie } = await login(server.url, PASSWORD)
  for (const mac of macs) {
    const kept = await fetch(`${server.url}/machines/${mac}/lshw.json`, { headers: { cookie } })
    assert.ok((await kept.text()) === TREE, mac)
  }
  return await health
}

async function post(url: string): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  const body = `{"disks":[],"lshw":${TREE}}`
  for (;;) {
    const { status, headers: told } = await fetch(url, { method: 'POST', headers, body })
    if (status !== 503) return status
    await sleep(Number(told.get('retry-after')) * 1000)
  }
}

/** Until `ending`; resolves to the longest time of an answer, in seconds, as curl takes it: this process is busy. */
async function watchHealth(url: string, ending: AbortSignal): Promise<number> {
  let slowest = 0
  while (!ending.aborted) {
    const { stdout } = await run('curl', [
      '-sfo',
      '/dev/null',
      '-w',
      '%{time_total}',
      `${url}/healthz`,
    ])
    slowest = Math.max(slowest, Number(stdout))
  }
  return slowest
}
