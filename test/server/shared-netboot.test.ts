/** Real servers on one database: each has the live system that machines boot, whoever fetched it, and goes on with it when it leads. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import {
  askAs,
  startServer,
  until as untilWithin,
  type ClusterServer,
} from '#test/support/cluster/servers.ts'
import { partName, sha256 } from '#test/support/server/boot-folder.ts'

const test = suite('live systems that servers share')
const postgres = lendDatabases(test)
const KEY = { FLASHER_DATABASE_KEY: 'a key of at least thirty-two characters' }

/** A machine with much other work takes its time. */
const until = <T>(ask: () => Promise<T | null | false>) => untilWithin(ask, 60_000)

type Ask = Awaited<ReturnType<typeof askAs>>

/** As the Netboot page does: the list first, and the files are compared with it. */
async function upload(ask: Ask, version: string): Promise<void> {
  const parts = new Map(TRIO.map((part) => [partName(version, part), `${part} ${version}`]))
  const list = [...parts].map(([name, text]) => `${sha256(text)}  ${name}\n`).join('')
  for (const [name, body] of [[partName(version, 'sha256'), list], ...parts] as const) {
    const answer = await ask(`/boot/${name}`, { method: 'PUT', body })
    assert.is(answer.status, 200, await answer.text())
  }
}

const namesOf = ({ home }: ClusterServer) => readdir(home.at('state/boot'))
const hasSet = async (server: ClusterServer, version: string) => {
  const names = await namesOf(server)
  return TRIO.every((part) => names.includes(partName(version, part)))
}
const shows = async (ask: Ask, text: string) =>
  (await (await ask('/ui/netboot')).text()).includes(text)
const statusOf = async ({ home }: ClusterServer, url: string) =>
  (await home.run(['database', 'status'], { FLASHER_DATABASE_URL: url, ...KEY })).stdout

/** A server tells the others what it has with its next sign of life. */
const awaitStatus = (server: ClusterServer, url: string, wanted: RegExp) =>
  until(async () => {
    const status = await statusOf(server, url)
    return wanted.test(status) && status
  })

test('a set that was uploaded by way of any server is on all of them, and is what the next leader gives out', async () => {
  const url = postgres.urlOf(await postgres.create())
  await using first = await startServer(url, KEY)
  await first.leads()
  await using second = await startServer(url, KEY)
  await second.standsBy()
  await upload(await askAs(second), '1.0.0')
  await until(() => hasSet(second, '1.0.0'))
  await second.process().saw('machines boot 1.0.0 (x86_64) here as well')
  const ask = await askAs(first)
  await until(() => shows(ask, 'All 2 servers have it'))
  assert.match(await (await ask('/ui/settings')).text(), /Live system/)
  const status = await awaitStatus(second, url, /has the netboot files[\s\S]*has the netboot files/)
  assert.match(status, /Netboot +1\.0\.0 \(x86_64\); 4 files, \d+ B/)

  // Somebody overwrites a file there: machines get what the leader has, and it is mended.
  await writeFile(second.home.at(`state/boot/${partName('1.0.0', 'squashfs')}`), 'damaged')
  await until(async () => {
    const path = second.home.at(`state/boot/${partName('1.0.0', 'squashfs')}`)
    return (await readFile(path, 'utf8')) === 'squashfs 1.0.0'
  })

  first.kill('SIGKILL')
  await second.leads()
  const asSecond = await askAs(second)
  assert.match(await (await asSecond('/ui/netboot')).text(), /1\.0\.0/)
  await upload(asSecond, '1.1.0')
  // Its files were deleted, and it was away when the set was changed.
  await rm(first.home.at('state/boot'), { recursive: true })
  first.restart()
  await first.standsBy()
  await until(() => hasSet(first, '1.1.0'))
  await first.process().saw('machines boot 1.1.0 (x86_64) here as well')
})

test('who leads and has lost its files, and no other server has them, says so and keeps what it has', async () => {
  const url = postgres.urlOf(await postgres.create())
  await using first = await startServer(url, KEY)
  await first.leads()
  const ask = await askAs(first)
  await upload(ask, '1.0.0')
  await until(() => shows(ask, 'This server has it'))
  first.kill('SIGTERM')
  await first.process().ended
  await rm(first.home.at(`state/boot/${partName('1.0.0', 'initrd')}`))
  first.restart()
  await first.leads()
  await first.process().saw('no other server that is here has all files of 1.0.0 (x86_64)')
  await awaitStatus(first, url, /lacks netboot files: no other server/)
  const again = await askAs(first)
  await upload(again, '1.2.0')
  await until(() => shows(again, 'This server has it'))
})

test.run()
