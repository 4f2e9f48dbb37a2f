/** A boot script that the server fails to decide on: machines boot their own disk, but for one whose disk may be half written. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { entryOf, REF, setOf } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('a fault at the boot script')
const [BEGUN, ARMED] = ['52:54:00:00:00:01', '52:54:00:00:00:02']
const FLASH = {
  boot_mode: 'flasher-flash-once',
  bty_image_ref: REF,
  target_disk_serial: 'S1',
}
/** Nothing that is stored of a machine can be changed, as on a disk without room. */
const NO_ROOM = `CREATE TRIGGER no_room BEFORE UPDATE ON machines
  BEGIN SELECT RAISE(ABORT, 'no room'); END`

test('a machine whose flash has begun asks again until the fault is over; one that has not begun boots its disk', async () => {
  await using server = await createTestServer({
    catalog: [entryOf(REF)],
    env: { FLASHER_PXE_SERVERS: 'http://b' },
  })
  const { vmlinuz, initrd, squashfs } = setOf('x86_64')
  for (const name of [vmlinuz, initrd, squashfs]) await server.putBootFile(name, 'bytes')
  const ask = await server.operator()
  for (const mac of [BEGUN, ARMED]) await ask(`/machines/${mac}`, asJson(FLASH, 'PUT'))
  const read = async (path: string) => {
    const answer = await server.request(path)
    assert.is(answer.status, 200)
    return await answer.text()
  }
  assert.match(await read(`/pxe/${BEGUN}`), 'flasher.server=')
  await read(`/pxe/${BEGUN}/plan`)
  using file = new DatabaseSync(join(server.dir, 'state.db'))
  file.exec(NO_ROOM)
  const waits = await read(`/pxe/${BEGUN}`)
  assert.match(waits, 'waits: the server could not decide, and the disk may be half written')
  assert.match(waits, 'chain --timeout 3000 --replace --autofree http://b/pxe/')
  assert.match(await read(`/pxe/${BEGUN}.grub`), 'may be half written')
  assert.match(await read(`/pxe/${ARMED}`), /^sanboot |exit/m)
  assert.not.match(await read(`/pxe/${ARMED}`), 'waits')
  file.exec('DROP TRIGGER no_room')
  for (const mac of [BEGUN, ARMED]) assert.match(await read(`/pxe/${mac}`), 'flasher.server=', mac)
})

test.run()
