"""Contract checks that every signal and every audit passes, ours and yours.

```python
@pytest.mark.parametrize("name", SIGNALS.names)
def test_every_signal_keeps_the_contract(name):
    check_signal(make_signal(name))
```
"""

from recollect.testing.audit_contract import check_audit
from recollect.testing.promises import BrokenContract
from recollect.testing.signal_contract import check_signal

__all__ = ["BrokenContract", "check_audit", "check_signal"]
