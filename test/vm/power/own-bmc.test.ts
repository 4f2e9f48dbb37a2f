/** A machine with a BMC, booted into the live system: it reads the address of its BMC and reports it. */
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { layBmc } from '#build/demo/bmc.ts'
import type { Namespace } from '#test/support/http/namespace.ts'
import { LAB_MAC } from '#test/support/server/lab.ts'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { startPxeLab, waitFor } from '#test/support/vm/pxe-flash.ts'

/** Nobody else listens in the namespace. */
const [LAN_PORT, MACHINE_PORT] = [9623, 9624]

/** Starts it in the namespace of the machine. `folder` is empty. */
async function startOwnBmc(namespace: Namespace, folder: string, address: string) {
  const argv = await layBmc({ folder, port: LAN_PORT, user: 'admin', password: 's3cret' })
  const program = join(folder, 'lan-settings')
  await writeFile(program, renderSettings(address))
  await chmod(program, 0o755)
  const conf = join(folder, 'lan.conf')
  const lines = (await readFile(conf, 'utf8'))
    .replace('    guid', `    lan_config_program "${program}"\n    guid`)
    .replace('  endlan\n', `  endlan\n  serial 15 127.0.0.1 ${MACHINE_PORT} codec VM\n`)
  await writeFile(conf, lines)
  const child = namespace.spawn(argv)
  const ended = once(child, 'exit')
  return {
    /** Words for QEMU. */
    args: [
      '-chardev',
      `socket,id=bmc,host=127.0.0.1,port=${MACHINE_PORT},reconnect=1`,
      '-device',
      'ipmi-bmc-extern,id=bmc0,chardev=bmc',
      '-device',
      'isa-ipmi-kcs,bmc=bmc0',
    ],
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** `get NAME…`, as ipmi_sim asks for the settings of the network. */
const renderSettings = (address: string) => `#!/bin/sh
for name in "$@"; do
  case $name in
    ip_addr) echo "ip_addr:${address}";;
    ip_addr_src) echo "ip_addr_src:dhcp";;
    subnet_mask) echo "subnet_mask:255.255.0.0";;
    mac_addr | *_gw_mac_addr) echo "$name:52:54:00:00:00:99";;
    *_gw_ip_addr) echo "$name:0.0.0.0";;
  esac
done
`

const ADDRESS = '10.20.0.11'

const test = suite('the BMC of a machine')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

run('its address is read through /dev/ipmi0, and nothing is done with it', async () => {
  await using pxe = await startPxeLab()
  const { lab } = pxe
  const folder = join(lab.folder, 'bmc')
  await mkdir(folder)
  await using bmc = await startOwnBmc(lab.namespace, folder, ADDRESS)
  await lab.ask(`/machines/${LAB_MAC}`, { boot_mode: 'flasher-tui' }, 'PUT')
  await using _ = await pxe.start('bios-rom', { args: bmc.args })
  await waitFor(pxe, async () => ((await pxe.readMachine()).bmc_address ?? null) !== null)
  assert.is((await pxe.readMachine()).bmc_address, ADDRESS)
  const power = lab.ask(`/machines/${LAB_MAC}/power`)
  assert.match(await power.then(String, String), 'no power control is set up')
})

test.run()
