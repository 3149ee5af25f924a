//! Privileges, and how they are given up.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use super::mounts::{StepError, at};

/// Gives up all capabilities but some: neither this process nor its children can get any other, not
/// even as root.
pub(super) fn give_up(but: CapabilitySet) -> Result<(), StepError> {
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).map_err(at("lock privileges", ""))?;
    let none = CapabilitySet::empty();
    let left = CapabilitySets { effective: but, permitted: but, inheritable: none };
    set_capabilities(None, left).map_err(at("give up capabilities", ""))?;
    set_no_new_privs(true).map_err(at("give up new privileges", ""))?;
    // Others of the same user are not to read or write the memory of this process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("hide memory", ""))
}
