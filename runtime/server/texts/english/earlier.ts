/** The earlier line's pages. */
export const EARLIER = {
  login: {
    label: 'Password of {user}',
    help: 'It is the password of the user {user} on the server. An administrator of that system sets a new one with {command}.',
  },
  upload: { button: 'Upload', unscripted: 'Uploading from a browser needs JavaScript.' },
  dashboard: {
    flashed: 'Last flashed',
    /** What a flash needs: its name, why it matters, its button, and what is true of it. */
    setup: {
      boot: {
        title: 'Live system',
        why: 'Machines boot it from the network to be flashed. Without it they can only boot their own disks.',
        action: 'Fetch a release',
        ready: 'All of its files are here.',
        missing: 'Missing: {files}.',
      },
      images: {
        title: 'Images',
        why: 'Machines are flashed with images from the image folder.',
        action: 'Upload an image',
        ready: { one: '1 image in the folder.', other: '{count} images in the folder.' },
        missing: 'There are no images yet.',
      },
      dhcp: {
        title: 'Network boot',
        why: 'A DHCP server must tell machines to boot from this server.',
        action: 'Set up network boot',
        ready: 'Machines find this server.',
        missing: 'No machine has booted from this server yet.',
      },
    },
  },
  machines: {
    example: 'box-1  state:failed  image:debian*  seen:<1h',
    views: { flash: 'Flash at every boot' },
    /** What a machine does at its next network boot. */
    policies: {
      local: 'boots its own disk',
      flash: 'flash, at every network boot',
      tui: 'asks at the machine',
    },
  },
  /** What is true of a machine, and what happens next or what to do. */
  machineState: {
    words: { local: 'boots its disk', tui: 'asks' },
    next: {
      local: 'Its next network boot starts its own disk.',
      flash: 'Its next network boot erases its disk and flashes it.',
      tui: 'Its next network boot asks the person in front of it.',
    },
    armed: 'Ready to be flashed.',
    flashed: 'Flashed.',
    triesAgain: 'Its next network boot tries again.',
    overdue: {
      is: 'Started to flash more than two hours ago and has not reported the end; the disk may be half written.',
      next: 'If it boots from the network again, it is flashed again.',
    },
    discovered: {
      local: 'Discovered, no image assigned; it boots its own disk.',
      tui: 'Discovered, no image assigned; it asks the person in front of it.',
    },
    assign: 'Assign an image and save the policy Flash at every network boot to flash it.',
    noImage: {
      is: 'Set to be flashed, but no image is assigned.',
      next: 'Assign one. Until then it boots its own disk.',
    },
    disarmed: {
      is: 'Not armed: an older state of the server was restored.',
      next: 'Save the policy Flash at every network boot to flash it. Until then it boots its own disk.',
    },
    heldBack: {
      is: 'A flash of it never reported its end, and an older state of the server was restored since; the disk may be half written.',
      next: 'Its next network boot asks the person in front of it. Save its policy again once you know what is on the disk.',
    },
    workflow: {
      running: {
        is: 'Flashed; its workflow is running.',
        next: 'Nothing to do: the server notes how it ends.',
      },
      failed: {
        is: 'Flashed, but its workflow failed.',
        isWithReason: 'Flashed, but its workflow failed: {error}.',
        next: 'The log of the run says more.',
      },
      succeeded: 'Flashed, and its workflow succeeded.',
    },
  },
  machine: {
    saved: 'Saved.',
    configuration: 'Configuration',
    decide: 'Decide what it does next',
    warnings: {
      image: 'No image is assigned, so the machine boots its own disk.',
      absent: '{image} is not in the image folder, so the flash cannot start.',
      files: 'The mode {mode} needs {files}: add it below.',
      disarmed:
        'An older state of the server was restored, so this machine is not flashed. Save the policy Flash at every network boot to flash it again.',
    },
    arming: {
      title: 'Flash {machine} at every network boot?',
      question: 'Flash {image} on {machine} at every network boot?',
      absent: 'not in the image folder',
      disk: 'Its only suitable disk',
      diskAbout: 'No disk is assigned: a machine with several suitable disks asks instead.',
      lastDisk: 'Last time this was {disk}.',
      /** `{strong}` to `{end}` is emphasized. */
      consequence:
        'Its only suitable disk is erased at every network boot, beginning with the next one, until you change the policy. {strong}Everything on it will be lost.{end}',
      files: 'Add {files} before it boots: the mode {mode} needs it.',
      button: 'Erase and flash at every network boot',
    },
    policies: {
      local: { title: 'Boot its own disk', text: 'Nothing is written.' },
      flash: {
        title: 'Flash at every network boot',
        text: 'Erases the disk of the machine. The policy stays until you change it.',
      },
      tui: {
        title: 'Ask at the machine',
        text: 'Starts the live system with its menu for the person in front of it.',
      },
    },
    form: {
      policy: 'Next network boot',
      image: 'Image',
      none: 'none',
      provisioning: 'After the flash',
      provisioningHint:
        'cijoe needs a live system that has cijoe; cijoe-online runs from this server.',
      hostname: 'Host name',
      hostnameHint: 'Where the machine answers once it is flashed.',
      workflow: 'cijoe workflow on this server',
      workflowHint: 'An absolute path; for cijoe-online.',
      button: 'Save',
    },
    facts: {
      title: 'Identity',
      mac: 'MAC',
      address: 'Address',
      seen: 'Last seen',
      discovered: 'Discovered',
      flashed: 'Last flashed',
      never: 'never',
      manual: 'added manually',
    },
    removal: {
      text: 'Its configuration and provisioning files are deleted. The machine reappears as discovered when it next boots from the network.',
      question:
        'The record of {mac} is deleted with its configuration and provisioning files; its events and runs are kept. No disk is changed. The machine reappears as discovered when it next boots from the network.',
    },
    script: 'Boot script',
    refused: 'Not saved: {reason}.',
    changed: 'it has changed',
  },
  provisioning: {
    title: 'Provisioning files',
    text: "The live system fetches them during the flash, with a token that is valid until the machine reports its end. Only the server's user can read them here.",
    present: 'present',
    content: 'Content',
    hint: 'Save it empty to remove the file.',
    button: 'Save {name}',
    tooLong: '{name} is longer than 1 MiB.',
  },
  images: {
    title: 'Images',
    caption: 'Images',
    name: 'Name',
    format: 'Format',
    size: 'Size',
    usedBy: 'Used by',
    search: { placeholder: 'Name, format', used: 'In use', unused: 'Unused' },
    users: { one: '1 machine', other: '{count} machines' },
    nobody: 'no machine',
    removal: {
      ask: 'Remove',
      askOne: 'Remove {name}',
      unused: 'No machine uses it.',
      users: {
        one: 'Show the machine that uses it',
        other: 'Show the {count} machines that use it',
      },
      needsForce: 'Not removed: machines use it. To remove it, tick Remove anyway.',
      flashing: '{name} was not removed: {machine} is being flashed with it.',
      gone: 'There is no image of this name any more.',
      removed: '{name} was removed.',
    },
    empty: { title: 'No images', text: 'Copy images into {folder}, or upload one.' },
    upload: {
      title: 'Upload an image',
      label: 'Image file',
      commands: 'From a command line',
      command: 'Command',
      hint: 'Names must end in {endings} or {last} to be listed. The folder is {folder}.',
    },
  },
  boot: {
    title: 'Boot files',
    files: {
      title: 'Live system',
      caption: 'Files of the live system',
      file: 'File',
      state: 'State',
      size: 'Size',
      changed: 'Changed',
      missing: 'missing',
      present: 'present',
      complete: 'All files are here: machines boot the live system from this server.',
      incomplete:
        'Machines cannot boot the live system yet, for these files are missing: {files}. Fetch a release, or upload them.',
    },
    fetch: {
      title: 'Fetch a release',
      obstacle: 'Nothing can be fetched: {reason}.',
      hint: 'From {repository} at {site}. All files are checked against {sums} and replaced together.',
      invalid: 'A tag is like v1.2.3, or latest.',
    },
    job: {
      completed: 'Release {tag} was installed {time}.',
      failed: 'Release {tag} was not installed: {error}. The files are as before.',
      running: 'Fetching release {tag}',
    },
    upload: { title: 'Upload a file', label: 'Boot file' },
  },
  settings: {
    title: 'Network boot and keys',
    authentication: {
      title: 'Authentication',
      password:
        'The password of the user {user} on the server protects these pages and the API. Change it there with {command}.',
      session:
        'A session ends after seven days without use. Deleting {file} in the state directory ends all sessions.',
      open: 'Boot scripts, boot files and images are open to everyone who can reach this server, because booting machines cannot log in.',
    },
    boot: {
      title: 'Network boot',
      text: 'Point the DHCP server at the bootstrap script, for machines that run iPXE:',
    },
    key: {
      title: 'SSH key for workflows',
      absent: 'There is no key: {reason}.',
      text: 'The mode {mode} logs in to machines as root with this key. Their images must have it in {file}.',
      label: 'Public key',
    },
    /** What the search finds the cards by, beside the settings. */
    keywords: {
      authentication: 'authentication password login user session passwd',
      pxe: 'pxe dhcp proxy dnsmasq tftp interface subnet secure boot',
      boot: 'network boot bootstrap dhcp ipxe',
      key: 'ssh key workflow cijoe-online public',
    },
  },
  pxe: {
    title: 'PXE proxy-DHCP',
    text: 'dnsmasq on this host can tell machines what to boot, beside the DHCP server that gives them their addresses.',
    state: 'State',
    active: 'active',
    interface: 'Interface',
    subnet: 'Subnet',
    port: 'Port',
    otherPort: 'This server listens on port {port}. Activate PXE again to use it.',
    deactivate: 'Deactivate PXE',
    activate: 'Activate PXE',
    noAddress: 'No interface of this host has an IPv4 address.',
    option: '{name} ({networks})',
    subnetExample: 'a.b.c.d or a.b.c.d/nn',
    subnetHint: 'Empty: the network of the interface.',
    secureBoot: 'Secure Boot',
    secureBootHint:
      'UEFI machines load shimx64.efi and the signed GRUB instead of ipxe.efi. BIOS machines load iPXE as before.',
    invalid: 'PXE was not activated: {reason}.',
    notActivated: 'PXE was not activated: {reason}',
    notDeactivated: 'PXE was not deactivated: {reason}',
    loopback: 'This server listens on {host} only, where machines cannot reach it.',
    https: 'This server speaks HTTPS, but machines fetch their first script by HTTP.',
  },
  workflow: {
    card: 'Workflow after the flash',
    status: 'Status',
    started: 'Started',
    never: 'never',
    output: 'Output',
    unset: 'No workflow is set, so none will run.',
    noHostname:
      'Set a host name: the server learns the address of the flashed system only when the policy is local.',
    waiting: 'waiting',
    states: {
      queued: 'waiting',
      running: 'running',
      completed: 'success',
      failed: 'failed',
      cancelled: 'failed',
    },
    title: 'Workflow run',
    log: 'Log',
    empty: 'Nothing yet.',
    rest: '{link}, the last 256 KiB.',
    plain: 'Plain text',
    workflow: 'Workflow',
    target: 'Target',
    silent: 'not answering yet',
    ended: 'Ended',
  },
} as const
