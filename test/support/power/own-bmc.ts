/** A BMC inside a QEMU machine, as its own system sees it: ipmi_sim behind the machine's KCS port, with an address of its own. */
import { once } from 'node:events'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { layBmc } from '#build/demo/bmc.ts'
import type { Namespace } from '../http/namespace.ts'

/** Nobody else listens in the namespace. */
const [LAN_PORT, MACHINE_PORT] = [9623, 9624]

/** Starts it in the namespace of the machine. `folder` is empty. */
export async function startOwnBmc(namespace: Namespace, folder: string, address: string) {
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
