/** The demo's machine: its hardware as QEMU's command line. */

export const ACCELERATORS = ['auto', 'tcg', 'kvm', 'hvf'] as const
export type Accelerator = Exclude<(typeof ACCELERATORS)[number], 'auto'>

export const MACHINE = {
  /** In QEMU's own range, and no one else's here. */
  mac: '52:54:00:de:30:01',
  /** Short: the page asks for it before the disk is erased. */
  serial: 'FLASHER-DEMO',
  megabytes: 1024,
  diskBytes: 16 * 2 ** 30,
} as const

interface MachineOptions {
  readonly accelerator: Accelerator
  readonly isWindow: boolean
  /** The port of the machine server on this host's loopback address. */
  readonly port: number
  /** Paths of files: the disk, the log of the serial line, and `SERIAL_SCREEN`. */
  readonly disk: string
  readonly serialLog: string
  readonly serialScreen: string
  /** A port of this host's loopback address: what the machine writes to its second serial port comes there. */
  readonly callPort: number
}

/** The host as QEMU's user network shows it to the machine; no root is needed for that network. */
const HOST = '10.0.2.2'

/** What a file of QEMU's firmware holds so that a BIOS speaks on the first serial port, too. */
export const SERIAL_SCREEN = Buffer.from([0xf8, 0x03])

/**
 * Plans a PC with a BIOS, one core (with two, emulation has been seen to crash), a network card
 * that boots first, and a disk. QEMU listens for commands on its standard input.
 */
export function planMachine(options: MachineOptions): readonly string[] {
  const { accelerator, isWindow, port, disk, serialLog, serialScreen, callPort } = options
  const { mac, serial, megabytes } = MACHINE
  const bootFile = `http://${HOST}:${port}/pxe-bootstrap.ipxe`
  const screen = isWindow
    ? ['-vga', 'std', '-fw_cfg', `name=etc/sercon-port,file=${escape(serialScreen)}`]
    : ['-machine', 'graphics=off', '-display', 'none']
  return [
    ['qemu-system-x86_64', '-machine', 'q35', '-nodefaults', '-qmp', 'stdio'],
    PROCESSORS[accelerator],
    ['-smp', '1', '-m', String(megabytes)],
    screen,
    ['-chardev', `file,id=serial,append=on,path=${escape(serialLog)}`, '-serial', 'chardev:serial'],
    ['-chardev', `socket,id=call,host=127.0.0.1,port=${callPort}`, '-serial', 'chardev:call'],
    ['-netdev', `user,id=net,bootfile=${bootFile}`],
    ['-device', `virtio-net-pci,netdev=net,mac=${mac},bootindex=1`],
    ['-device', 'virtio-rng-pci'],
    ['-drive', `if=none,id=disk,format=raw,discard=unmap,file=${escape(disk)}`],
    ['-device', `virtio-blk-pci,drive=disk,serial=${serial},bootindex=2`],
  ].flat()
}

const PROCESSORS: Readonly<Record<Accelerator, readonly string[]>> = {
  tcg: ['-accel', 'tcg,thread=multi', '-cpu', 'max'],
  kvm: ['-accel', 'kvm', '-cpu', 'host'],
  hvf: ['-accel', 'hvf', '-cpu', 'host'],
}

/** The smallest machine: it runs one sector and ends QEMU with `PROBE_EXIT_CODE`. */
export const planProbe = (accelerator: Accelerator, sector: string): readonly string[] =>
  [
    ['qemu-system-x86_64', '-nodefaults', '-display', 'none', '-no-reboot', '-m', '32'],
    PROCESSORS[accelerator],
    ['-device', 'isa-debug-exit,iobase=0x501,iosize=1'],
    ['-drive', `format=raw,readonly=on,if=ide,file=${escape(sector)}`],
  ].flat()

/** QEMU's answer to the byte that `renderProbe` sends. */
export const PROBE_EXIT_CODE = 0x21

/** A comma in a path would begin another option. */
const escape = (path: string) => path.replaceAll(',', ',,')
