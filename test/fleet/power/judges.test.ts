/** Debian's own Redfish clients use the BMC of our tests: what it says is Redfish to others, too. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '#kit/host/shell.ts'
import { opened } from '#test/support/opened.ts'
import { startRedfish } from '#test/support/power/redfish-fake.ts'

const SUSHY = `
import sys
import sushy
from sushy import auth
login = auth.SessionOrBasicAuth('admin', 's3cret')
root = sushy.Sushy(sys.argv[1], auth=login)
system = root.get_system('/redfish/v1/Systems/1')
assert system.power_state == sushy.PowerState.OFF, system.power_state
system.set_system_boot_options(
    sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE, mode=sushy.BootSourceOverrideMode.UEFI)
system.refresh()
assert system.boot.target == sushy.BootSource.PXE, system.boot.target
assert system.boot.enabled == sushy.BootSourceOverrideEnabled.ONCE
system.reset_system(sushy.ResetType.ON)
system.refresh()
assert system.power_state == sushy.PowerState.ON
media = root.get_manager('/redfish/v1/Managers/1').virtual_media.get_members()
media[0].insert_media('http://192.0.2.1/x.iso')
login.close()
print('agreed')
`

const test = suite('judges of the Redfish BMC of the tests')
const fake = opened(test, () => startRedfish())
const shell = createShell({ env: process.env })
test.before.each(() => fake().reset())

test('sushy turns it on from the network and inserts a CD', async () => {
  const ran = await shell.run(['/usr/bin/python3', '-c', SUSHY, fake().address], {
    timeout: 60_000,
  })
  assert.match(ran.stdout, /agreed/, ran.stderr)
  assert.is(fake().state.isOn, true)
  assert.is(fake().state.image, 'http://192.0.2.1/x.iso')
  assert.is(fake().sessions(), 0)
})

test('redfishtool turns it on and reads that it is', async () => {
  const tool = ['redfishtool', '-r', `127.0.0.1:${fake().port}`, '-S', 'Never', '-u', 'admin']
  const login = ['-p', 's3cret', '-A', 'Basic', 'Systems', '-I', '1']
  const set = await shell.run([...tool, ...login, 'reset', 'On'], { timeout: 60_000 })
  assert.is(set.exitCode, 0, set.stderr + set.stdout)
  assert.is(fake().state.isOn, true)
  const read = await shell.run([...tool, ...login, 'get'], { timeout: 60_000 })
  assert.match(read.stdout, /"PowerState": "On"/, read.stderr)
})

test.run()
