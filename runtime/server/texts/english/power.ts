/** The power of machines: its card, its questions, the form of a BMC, the action on many. */

/** `{names}`: machines that lose power as well. */
const shared = 'At the same outlet, and without power as well: {names}.'

export const POWER = {
  title: 'Power',
  none: 'The server can turn this machine on and off once it knows its BMC, or another way to its power.',
  /** `{address}`: reported by the machine's live system, unchecked. */
  suggested:
    'The machine reports a BMC at {address}. Make sure that this is its BMC before you save the form: the user and the password are sent there.',
  outside:
    'The machine reports a BMC at {address}, which is outside [power] networks. The server does not contact it.',
  /** `{strong}` to `{end}` is emphasized. */
  seen: {
    on: '{strong}On{end}, seen {time}.',
    off: '{strong}Off{end}, seen {time}.',
    unknown: '{strong}State unknown{end}, asked {time}.',
  },
  never: 'Its state was not read since the server started.',
  cannotTell: 'This way cannot tell whether the machine is on.',
  busy: 'A request is under way',
  reload: 'Load the page again to see what became of it.',
  asked: 'Requested. The result appears here and among the events.',
  saved: 'Saved. Its state is being read.',
  forgotten: 'The BMC was forgotten.',
  unpinned: 'The certificate was forgotten. The next one that the BMC shows is pinned.',
  wrongAction: 'no such request',
  noWay: 'No BMC of this machine is set.',
  buttons: {
    on: 'Turn on',
    network: 'Turn on from network',
    'network-restart': 'Restart from network…',
    off: 'Turn off…',
    restart: 'Restart…',
    read: 'Read state',
  },
  facts: {
    way: 'Way',
    address: 'Address',
    outlet: 'Outlet',
    sharing: 'At the same outlet',
    user: 'User',
    /** `{user}`: the name; whose it is. */
    users: {
      machine: '{user}',
      label: '{user}, of the label {label}',
      all: '{user}, of all machines',
    },
    certificate: 'Certificate',
    authority: 'An authority vouches for it.',
    unseen: 'None seen yet. The first one is pinned.',
    pinned: 'SHA-256; only this one is accepted.',
    unpin: 'Forget certificate',
  },
  form: {
    set: 'Set its BMC',
    change: 'Change its BMC',
    way: 'Way',
    ways: {
      redfish: 'Redfish',
      ipmi: 'IPMI',
      'wake-on-lan': 'Wake-on-LAN',
      hook: 'URLs of a power outlet, a plug or a KVM',
    },
    address: 'Address',
    addressHint:
      'Host name or IP address within [power] networks, perhaps with a port. For Wake-on-LAN the broadcast address of its network.',
    system: 'System',
    systemHint: 'Redfish: only where a BMC has several.',
    httpBoot: 'HTTP Boot URL',
    httpBootHint:
      'Redfish with UEFI: what it boots from the network, such as http://SERVER:8080/boot/ipxe.efi. Leave empty for PXE.',
    user: 'User',
    userHint: 'Leave empty to use the user of a label or of all machines.',
    password: 'Password',
    passwordHint: 'Leave empty to keep the present one. It is not shown again.',
    firmware: 'Firmware',
    firmwares: { uefi: 'UEFI', bios: 'BIOS' },
    outlet: 'Outlet',
    outletHint: 'A name for what feeds it. Machines with the same name lose power together.',
    on: 'URL that turns it on',
    /** `{mac}` stays as it is, in braces. */
    urlHint: '{mac} in a URL becomes the MAC address of the machine.',
    off: 'URL that turns it off',
    state: 'URL that tells its state',
    network: 'URL that sets the network as next boot device',
    method: 'Method',
    save: 'Save',
    wrong: {
      way: 'Select a way.',
      address: 'Must be a host name or IP address, perhaps with a port.',
      system: 'At most 200 characters.',
      user: 'At most 255 characters, none of them a control character.',
      password: 'At most 255 characters, none of them a control character.',
      passwordMissing: 'Enter the password as well: it is not sent to another address or user.',
      firmware: 'Select one.',
      outlet: 'At most 100 characters, none of them a control character.',
      url: 'Must be an http or https address without user and password.',
      method: 'GET or POST.',
    },
  },
  removal: {
    button: 'Forget BMC…',
    title: 'Forget the BMC of {name}?',
    text: 'Its address, user and password are deleted. The machine stays as it is.',
    sure: 'Forget BMC',
  },
  question: {
    titles: {
      off: 'Turn off {name}?',
      restart: 'Restart {name}?',
      network: 'Restart {name} from the network?',
    },
    text: 'What runs on it ends at once, as if its plug were pulled.',
    shared,
    /** `{names}`: machines whose disk is being written. */
    writing: 'A disk is being written: {names}. Without power that disk does not boot.',
    twice: 'Cut the power while a disk is being written?',
    buttons: { off: 'Turn off', restart: 'Restart' },
    next: 'Continue…',
    cut: 'Cut the power nevertheless',
  },
  flash: {
    label: 'Turn it on, or restart it, from the network now',
    hint: 'What runs on it ends. Otherwise it is flashed at its next network boot.',
    wake: 'Turn it on now',
    armed: 'Armed, and asked to boot from the network now: see {power}.',
  },
  bulk: {
    action: 'Power',
    later: 'More disks are being written by now. Look at the list, and type the number again.',
    actions: {
      on: { title: 'Turn on', text: 'Those that are on stay on.' },
      network: {
        title: 'Turn on from network',
        text: 'Those that are on are not restarted: an event says so.',
      },
      'network-restart': {
        title: 'Restart from network',
        text: 'Also those that are on. What runs on them ends.',
      },
      restart: { title: 'Restart', text: 'What runs on them ends.' },
      off: { title: 'Turn off', text: 'What runs on them ends.' },
      read: { title: 'Read state', text: 'Changes nothing.' },
    },
    stagger: 'Seconds between two machines',
    staggerWrong: 'Must be a number from 0 to 3600.',
    writing: 'Also cut the power of machines whose disk is being written',
    writingHint: 'Such a disk does not boot afterwards. Otherwise these machines are skipped.',
    chosen: 'Select what to do.',
    shared,
    plain: 'Reached by {way}.',
    started: 'Requested. Each result is an event.',
    stop: 'In progress',
    events: 'Events',
    /** `{span}`: so long the pauses alone take. */
    takes: 'The last one begins after {span}.',
  },
} as const
