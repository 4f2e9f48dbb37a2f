/** One call over IPMI: a machine that is off is flashed over PXE, and the first boot of its system proved; one that cannot boot is called so. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { startIpmi } from '#test/support/power/ipmi-emulator.ts'
import {
  assign,
  callFlash,
  introduce,
  makeBrokenImage,
  ONE_CALL,
  packImage,
  readWaterfall,
} from '#test/support/power/one-call.ts'
import { powerMachine } from '#test/support/power/powered-machine.ts'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { openCloudImage } from '#test/support/vm/cloud-image.ts'
import { openMachine, startBootLab } from '#test/support/vm/pxe-flash.ts'

const PORT = 623

const test = suite('one call over IPMI')
const obstacle = findBuildObstacle() ?? findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

run(
  'off, one call, IPMI, PXE, flashed: what cannot boot failed to boot, and what booted is proved',
  async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-one-call-'))
    const good = await packImage(await openCloudImage(), join(folder.path, 'cloud.img.zst'))
    const broken = await makeBrokenImage(folder.path)
    await using lab = await startBootLab({ images: [good, broken], env: ONE_CALL })
    const spawn = (argv: readonly string[]) => lab.namespace.spawn(argv)
    await using bmc = await startIpmi({ spawn, port: PORT })
    const pxe = await openMachine(lab, basename(good))
    await introduce(lab, { way: 'ipmi', address: bmc.address, firmware: 'bios' }, [
      basename(good),
      basename(broken),
    ])
    await using machine = powerMachine({ isOn: bmc.isOn, start: () => pxe.start('bios-rom') })
    const call = (...words: readonly string[]) =>
      Promise.race([machine.broken, callFlash(lab, ...words)])

    assert.is(await bmc.isOn(), false)
    // There is no system in it that a template could be for.
    await assign(lab.ask, null)
    const failed = await call('--power', '--image', basename(broken))
    assert.equal([failed.code, failed.outcome], [4, 'failed-to-boot'], failed.told)
    assert.match(failed.proof?.reason ?? '', 'instead of running the new system')
    assert.match(await bmc.log(), /set boot pxe/)

    await assign(lab.ask, 'web')
    // It is on, and restarts again and again: only a restart may end that.
    const proved = await call('--restart', '--image', basename(good))
    assert.equal(
      [proved.code, proved.outcome, proved.proof?.how],
      [0, 'booted', 'call'],
      proved.told,
    )
    assert.ok(await bmc.isOn())
    const { bars, seconds, unattributed_seconds: lost } = await readWaterfall(lab)
    console.log(bars.map(({ part, seconds: part_s }) => `${part} ${part_s.toFixed(1)}`).join(', '))
    assert.ok(lost <= 0.02 * seconds, `${lost} of ${seconds} s belong to no part`)
  },
)

test.run()
